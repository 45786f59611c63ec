// Ranks of a job before MPI has brought them together, and while it ends: processes of this machine
// in whose environments the launcher has put the name of the job and their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringlab::mpi {

/// Knows nothing of ranks on other machines, nor of those of a launcher without PMIx.
class LaunchedRanks {
 public:
  LaunchedRanks();

  /// This process's number; -1 where the launcher does not say.
  int rank() const { return rank_; }
  /// Looks at all of them; to be called a few times a second.
  void look();
  /// Ranks that have ended, are stopped, or have never come, and why one knows. Where one rank takes
  /// others with it, those that were missed first and still are.
  const std::map<int, std::string>& missing() const { return missing_; }

 private:
  struct Process {
    std::int64_t number = 0;
    std::uint64_t start = 0;  ///< tells it from another one of the same number
  };
  void find();
  std::string what_is_wrong_with(int rank) const;

  int rank_ = -1, ranks_ = 0;
  int here_ = 0;  ///< ranks on this machine
  std::string job_;
  std::vector<std::optional<Process>> found_;  ///< by rank
  std::map<int, std::string> missing_;
};

}  // namespace ringlab::mpi
