#include "optimized/transport/mpi/mpi_peers.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <system_error>

#include "optimized/transport/mpi/mpi_control.h"

namespace ringlab::mpi {

namespace {

ProcessState state_of(char letter) {
  switch (letter) {
    case 'Z':  // it has ended, and its parent has not asked how
    case 'X':
      return ProcessState::gone;
    case 'T':
    case 't':
      return ProcessState::stopped;
    default:
      return ProcessState::running;
  }
}

}  // namespace

// Linux: proc(5). The name of the program, in parentheses, may hold anything.
ProcessFacts facts_of_process(std::int64_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  std::string line;
  // Exhausted descriptors must not make a living peer dead: signal 0 asks without a file.
  if (!std::getline(file, line)) {  // no such process, or no more files may be open
    const bool gone = ::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
    return {.state = gone ? ProcessState::gone : ProcessState::unknown};
  }
  // Behind the last parenthesis: names of programs may hold spaces and parentheses themselves.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  char letter = 0;
  ProcessFacts facts;
  fields >> letter >> facts.parent;
  constexpr int kUntilStart = 17;  // fields between the parent, the 4th, and the start, the 22nd
  std::string skipped;
  for (int i = 0; i < kUntilStart; ++i) fields >> skipped;
  fields >> facts.start;
  facts.state = state_of(letter);
  return facts;
}

PeerProcesses::Process PeerProcesses::this_process() {
  Process process{.number = ::getpid()};
  std::string boot;
  // Numbers of processes mean the same only within one boot of one machine and one container.
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code failure;
  const auto container = std::filesystem::read_symlink("/proc/self/ns/pid", failure);
  const ProcessFacts facts = facts_of_process(process.number);
  process.start = facts.start;
  // `view` stays 0: no rank will look this process up.
  if (facts.state != ProcessState::running || boot.empty() || failure) return process;
  process.view = std::hash<std::string>()(boot + container.string());
  return process;
}

PeerProcesses::PeerProcesses(MPI_Comm comm) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  mine_ = static_cast<std::size_t>(rank);
  processes_.resize(static_cast<std::size_t>(ranks));
  const Process mine = this_process();
  // Sent as it lies in memory; all ranks run the same build.
  check_mpi(
      MPI_Allgather(&mine, sizeof mine, MPI_BYTE, processes_.data(), sizeof mine, MPI_BYTE, comm),
      rank, "MPI_Allgather");
}

ProcessState PeerProcesses::look(int rank) const {
  const Process& peer = processes_[static_cast<std::size_t>(rank)];
  // On another machine, or not known: its number means nothing here.
  if (peer.view == 0 || peer.view != processes_[mine_].view) return ProcessState::unknown;
  const ProcessFacts facts = facts_of_process(peer.number);
  // The number has been given to another process since: ours has ended.
  const bool is_another = facts.start != 0 && facts.start != peer.start;
  return is_another ? ProcessState::gone : facts.state;
}

std::string name_of_process(std::int64_t number) {
  return "process " + std::to_string(number) + " of this machine";
}

std::string PeerProcesses::name_of(int rank) const {
  return name_of_process(processes_[static_cast<std::size_t>(rank)].number);
}

}  // namespace ringlab::mpi
