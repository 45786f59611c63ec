// The first failure of a run, and the errors that everybody gets from it.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "optimized/transport/message_table.h"
#include "reference/core/error.h"

namespace ringlab::in_process {

/// The "rank" of a failure that is everybody's, such as a deadlock.
inline constexpr int kEveryRank = -1;

/// Keeps the first failure; later ones are consequences and are dropped. Not thread-safe.
class FirstFailure {
 public:
  /// A failure that the network found while `rank` was waiting, or the reason why a body ended.
  void record(int rank, const Error& error);
  explicit operator bool() const { return error_.has_value(); }

  /// Throws the failure itself; call only when there is one.
  [[noreturn]] void rethrow() const;
  /// Throws what another rank is told: "rank R: expected TO DO WHAT, found that rank K failed (…)".
  [[noreturn]] void throw_to_survivor(int rank, const std::string& doing) const;

 private:
  int rank_ = kEveryRank;
  std::optional<Error> error_;
};

/// What a body threw, as an Error that names its rank. An Error keeps its kind; anything else is
/// an environment error with its text.
Error error_of_rank(int rank, const std::exception_ptr& thrown);

/// "rank R: expected TO DO WHAT, found FOUND. HINT"
Error wait_error(int rank, const std::string& doing, const std::string& found,
                 const std::string& hint);
Error size_error(int rank, const Message& message);
/// Who waits for whom, when nobody can go on; an empty entry is a rank that has ended.
Error deadlock_error(const std::vector<std::optional<Operation>>& waiting);

/// Usage error unless ranks >= 1.
void check_ranks(int ranks);

}  // namespace ringlab::in_process
