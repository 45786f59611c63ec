// The one exception type of ringlab: what was expected, what was found, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace ringlab {

/// The kind of an error: who has to act. The value is the exit code of the program.
enum class ErrorKind {
  usage = 2,        ///< the command line is wrong
  input = 3,        ///< the input data is wrong
  environment = 4,  ///< no device, a rank died, out of memory, a deadline passed, disk full
};

/// The parts of an error message; parts left empty are left out of the text.
struct ErrorParts {
  std::string where = {};     ///< the option, file, tensor or rank concerned
  std::string expected = {};  ///< what would have been right
  std::string actual = {};    ///< what was found
  std::string hint = {};      ///< what the reader can do about it
};

/// Thrown at the border for caller mistakes and by `check_*` helpers for environment failures.
/// `what()` reads "WHERE: expected EXPECTED, found ACTUAL. HINT".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, ErrorParts parts);
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }
  const ErrorParts& parts() const { return parts_; }

 private:
  ErrorKind kind_;
  ErrorParts parts_;
};

/// Why a rank of a distributed run could not go on. Always an environment error; what() names this
/// rank, the suspect, the step and the operation, and how long it waited.
struct RankFailure {
  int rank = 0;                ///< who says so
  int suspect = -1;            ///< who is to blame as far as is known; -1: nobody in particular
  int step = -1;               ///< of the schedule; -1: before the first
  std::string operation = {};  ///< "receive chunk of 3 from rank 1"
  std::string reason = {};     ///< "no message within 2 s", "rank 1 has ended"
  double elapsed_s = 0;        ///< since the operation began
  std::string recording = {};  ///< the last events of this rank, one per line
};
class RankError : public Error {
 public:
  explicit RankError(RankFailure failure);
  const RankFailure& failure() const { return failure_; }

 private:
  RankFailure failure_;
};

[[noreturn]] void throw_usage_error(ErrorParts parts);
[[noreturn]] void throw_input_error(ErrorParts parts);
[[noreturn]] void throw_environment_error(ErrorParts parts);

}  // namespace ringlab
