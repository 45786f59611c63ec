#include "cli/line/launcher.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "optimized/transport/mpi/mpi_session.h"

namespace ringlab::cli {
namespace {

constexpr std::chrono::milliseconds kUntilTheFirstHasSpoken{500};

// Open MPI's mpirun; anything that speaks PMIx (srun --mpi=pmix); MPICH, Intel MPI, srun
// --mpi=pmi2.
constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

bool is_first_rank() {
  for (const char* name : kRankVariables) {
    const char* const rank = std::getenv(name);
    if (rank) return std::string_view(rank) == "0";
  }
  return true;  // nobody launched it
}

/// Ranks that meet in a folder have no launcher: each says what it found.
bool asks_for_mpi(const std::vector<std::string>& words) {
  const auto begins = [](const char* option) {
    return [option](const std::string& word) { return word.starts_with(option); };
  };
  if (std::ranges::any_of(words, begins("--meet"))) return false;
  for (const char* transport : {"mpi", "nccl"}) {
    if (std::ranges::find(words, std::string("--transport=") + transport) != words.end()) {
      return true;
    }
    const auto option = std::ranges::find(words, "--transport");
    if (option != words.end() && option + 1 != words.end() && *(option + 1) == transport) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool first_rank_says_it(const std::vector<std::string>& words, const Error& error) {
  const bool found_by_all = error.kind() == ErrorKind::usage || !mpi_available();
  if (!found_by_all || !asks_for_mpi(words) || is_first_rank()) return false;
  std::this_thread::sleep_for(kUntilTheFirstHasSpoken);
  return true;
}

}  // namespace ringlab::cli
