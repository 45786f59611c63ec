// The first failure of a run, and the errors that everybody gets from it.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimized/transport/message_table.h"
#include "reference/core/error.h"

namespace ringlab::in_process {

/// The "rank" of a failure that is everybody's, such as a deadlock.
inline constexpr int kEveryRank = -1;

/// Keeps the first failure; later ones are consequences and are dropped, unless the same rank has
/// found out at which step it was. Not thread-safe.
class FirstFailure {
 public:
  explicit FirstFailure(int ranks);

  /// A failure that the network found while `rank` was waiting.
  void record(int rank, const Error& error);
  /// An exception of the body of `rank`. Works when there is no memory left.
  void record_thrown(int rank, const std::exception_ptr& thrown) noexcept;
  explicit operator bool() const { return error_ != nullptr; }

  /// Throws the failure itself; call only when there is one.
  [[noreturn]] void rethrow() const;
  /// Throws the error of a rank that did not fail: "rank R: expected TO DO WHAT, found rank K
  /// failed (…)", a RankError whose suspect is K.
  [[noreturn]] void throw_to_survivor(int rank, const std::string& doing) const;

 private:
  int rank_ = kEveryRank;
  std::shared_ptr<const Error> error_;                       // of the type that was recorded
  std::vector<std::shared_ptr<const Error>> out_of_memory_;  // per rank, made in good time
};

/// Throws a copy that is still a RankError when `error` is one.
[[noreturn]] void throw_copy(const Error& error);

/// An exception of a body, as an Error that names its rank. An Error keeps its kind, a RankError
/// all it says; any other exception becomes an environment error with its text.
std::shared_ptr<const Error> error_of_rank(int rank, const std::exception_ptr& thrown);

/// The operation of a rank, and its duration, when the rank found out that it cannot go on.
struct Attempt {
  int rank = 0;
  std::string doing = {};  ///< "to receive tag 3 from rank 1"
  double elapsed_s = 0;    ///< 0 where time is virtual
};
RankError wait_error(const Attempt& attempt, int suspect, const std::string& reason);
RankError size_error(int rank, const PairedMessage& message);
/// An error that says who waits for whom, when nobody can go on; an empty entry is a rank that has
/// ended. The error names the first rank that waits, and suspects nobody.
RankError deadlock_error(const std::vector<std::optional<HalfMessage>>& waiting,
                         const MessageTable& table);

/// Usage error unless ranks >= 1.
void check_ranks(int ranks);

}  // namespace ringlab::in_process
