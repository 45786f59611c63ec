#include "cli/line/launcher.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace ringlab::cli {
namespace {

constexpr std::chrono::milliseconds kUntilTheFirstHasSpoken{2000};

// Open MPI's mpirun; anything that speaks PMIx (srun --mpi=pmix); MPICH, Intel MPI, srun
// --mpi=pmi2.
constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

// Empty when nobody launched it.
std::string_view number_by_launcher() {
  for (const char* name : kRankVariables) {
    const char* const rank = std::getenv(name);
    if (rank) return rank;
  }
  return {};
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

bool is_launched() { return !number_by_launcher().empty(); }

bool is_first_rank() {
  const std::string_view number = number_by_launcher();
  return number.empty() || number == "0";
}

std::string rank_prefix() {
  const std::string_view number = number_by_launcher();
  return number.empty() ? std::string() : "rank " + std::string(number) + ": ";
}

std::string said_in_turn(const std::vector<std::string>& words, const Error& error) {
  if (is_first_rank() || !asks_for_mpi(words)) return error.what();
  std::this_thread::sleep_for(kUntilTheFirstHasSpoken);
  return rank_prefix() + error.what();
}

}  // namespace ringlab::cli
