#include "optimized/transport/mpi/mpi_launched.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "optimized/transport/mpi/mpi_control.h"
#include "optimized/transport/mpi/mpi_peers.h"
#include "reference/core/machine/folder.h"

namespace ringlab::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJob = "PMIX_NAMESPACE";
constexpr const char* kRank = "PMIX_RANK";

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number_of(const std::string& text) {
  const bool is_number = !text.empty() && text.size() < 9 &&
                         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::stoi(text) : -1;
}

/// The value of a variable among "NAME=VALUE" that end with zeros; empty where there is none.
std::string value_in(std::string_view variables, const std::string& name) {
  for (std::size_t at = 0; at < variables.size();) {
    const std::string_view one = variables.substr(at, variables.find('\0', at) - at);
    if (one.starts_with(name + "=")) return std::string(one.substr(name.size() + 1));
    at += one.size() + 1;
  }
  return {};
}

/// The environment that a process began with; empty for processes of other users.
std::string environment_of(const fs::path& process) {
  std::ifstream file(process / "environ", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The name of the program that a process runs: scripts around it have its environment, too.
std::string program_of(const fs::path& process) {
  std::error_code failure;
  return fs::read_symlink(process / "exe", failure).filename().string();
}

}  // namespace

LaunchedRanks::LaunchedRanks()
    : rank_(number_of(text_of(kRank))),
      ranks_(number_of(text_of("OMPI_COMM_WORLD_SIZE"))),
      here_(number_of(text_of("OMPI_COMM_WORLD_LOCAL_SIZE"))),
      job_(text_of(kJob)),
      found_(job_.empty() || rank_ >= ranks_ ? 0 : static_cast<std::size_t>(ranks_)) {}

void LaunchedRanks::find() {
  static const std::string program = program_of("/proc/self");
  for (const std::string& name : names_in("/proc")) {
    const int number = number_of(name);
    if (number < 0) continue;
    const fs::path process = fs::path("/proc") / name;
    const std::string variables = environment_of(process);
    if (value_in(variables, kJob) != job_ || program_of(process) != program) continue;
    const auto rank = static_cast<std::size_t>(number_of(value_in(variables, kRank)));
    if (rank < found_.size()) found_[rank] = {number, facts_of_process(number).start};
  }
}

std::string LaunchedRanks::what_is_wrong_with(int rank) const {
  const std::optional<Process>& process = found_[static_cast<std::size_t>(rank)];
  // Ranks that were never seen may be on other machines, unless all of them are on this one.
  if (!process) return here_ == ranks_ ? name_of(rank) + " has not come" : "";
  const ProcessFacts facts = facts_of_process(process->number);
  const bool is_another = facts.start != 0 && facts.start != process->start;
  if (is_another || facts.state == ProcessState::gone) {
    return name_of(rank) + " is dead: " + name_of_process(process->number) + " has ended";
  }
  const bool is_stopped = facts.state == ProcessState::stopped;
  return is_stopped ? name_of(rank) + " is stopped: " + name_of_process(process->number) : "";
}

void LaunchedRanks::look() {
  if (std::ranges::count_if(found_, [](const auto& one) { return one.has_value(); }) < here_) {
    try {
      find();
    } catch (const std::system_error&) {
      // No descriptor is left for /proc: the next look tries again.
    }
  }
  std::map<int, std::string> now;
  for (int rank = 0; rank < std::ssize(found_); ++rank) {
    const std::string wrong = what_is_wrong_with(rank);
    if (!wrong.empty()) now[rank] = wrong;
  }
  std::erase_if(missing_, [&](const auto& one) { return !now.contains(one.first); });
  if (missing_.empty()) missing_ = now;
}

}  // namespace ringlab::mpi
