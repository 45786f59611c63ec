#include "cli/line/launcher.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "cli/line/endings.h"

namespace ringlab::cli {
namespace {

constexpr std::chrono::milliseconds kUntilTheFirstHasSpoken{2000};

// Open MPI's mpirun; anything that speaks PMIx (srun --mpi=pmix); MPICH, Intel MPI, srun
// --mpi=pmi2.
constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
// Open MPI's mpirun; srun, whatever it speaks; MPICH, Intel MPI.
constexpr const char* kRanksVariables[] = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS",
                                           "PMI_SIZE"};

// The rank's number in the launcher's words; empty without a launcher.
std::string_view number_by_launcher() {
  for (const char* name : kRankVariables) {
    const char* const rank = std::getenv(name);
    if (rank) return rank;
  }
  return {};
}

/// Ranks that meet in a folder have no launcher: each says what it found.
bool meets_in_a_folder(const std::vector<std::string>& words) {
  return std::ranges::any_of(words,
                             [](const std::string& word) { return word.starts_with("--meet"); });
}

}  // namespace

bool is_launched() { return !number_by_launcher().empty(); }

bool is_first_rank() {
  const std::string_view number = number_by_launcher();
  return number.empty() || number == "0";
}

int launched_ranks() {
  if (!is_launched()) return 1;
  for (const char* name : kRanksVariables) {
    if (const char* const ranks = std::getenv(name)) return std::atoi(ranks);
  }
  return 1;
}

std::string rank_prefix() {
  const std::string_view number = number_by_launcher();
  return number.empty() ? std::string() : "rank " + std::string(number) + ": ";
}

std::string said_in_turn(const std::vector<std::string>& words, const Error& error) {
  if (is_first_rank() || meets_in_a_folder(words)) return error.what();
  leave_words_to_others();
  std::this_thread::sleep_for(kUntilTheFirstHasSpoken);
  return rank_prefix() + error.what();
}

}  // namespace ringlab::cli
