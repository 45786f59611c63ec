// Ends of a subject's run without an answer.
#pragma once

#include <stdexcept>
#include <utility>

#include "reference/core/error.h"

namespace ringlab::verify {

/// A run asked for what a subject cannot do: no verdict, run_law() discards the case.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A foreign implementation refuses a case that it claims to take: no verdict on the case, which is
/// counted.
struct Refused : Unsupported {
  using Unsupported::Unsupported;
};

/// Endings of a call: only one that answered can be compared.
enum class Ending { answered, threw, crashed, timed_out };

/// A subject in a process of its own has crashed, or gave no answer in time.
class SubjectLost : public Error {
 public:
  SubjectLost(Ending ending, ErrorParts parts)
      : Error(ErrorKind::environment, std::move(parts)), ending_(ending) {}
  Ending ending() const { return ending_; }

 private:
  Ending ending_;
};

}  // namespace ringlab::verify
