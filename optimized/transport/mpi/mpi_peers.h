// The processes of a job that run on this machine, as the system sees them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringlab::mpi {

enum class ProcessState {
  unknown,  ///< on another machine, or in another container
  running,
  stopped,  ///< by a signal or a debugger
  gone
};

/// Facts of the operating system about a process of this machine.
struct ProcessFacts {
  ProcessState state = ProcessState::unknown;
  std::int64_t parent = 0;
  std::uint64_t start = 0;  ///< after booting, so that another one of the same number is told apart
};
ProcessFacts facts_of_process(std::int64_t number);
/// "process 1234 of this machine".
std::string name_of_process(std::int64_t number);

/// Looks at processes of ranks without asking them: facts of the operating system are certain,
/// however busy the machine is.
class PeerProcesses {
 public:
  /// The ranks tell each other which processes they are; collective.
  explicit PeerProcesses(MPI_Comm comm);

  ProcessState look(int rank) const;
  /// "process 1234 of this machine".
  std::string name_of(int rank) const;

 private:
  /// A process, and which processes it can see.
  struct Process {
    std::uint64_t view = 0;   ///< of the machine since it was booted, and the container; 0: unknown
    std::uint64_t start = 0;  ///< after booting: tells it from another one of the same number
    std::int64_t number = 0;
  };
  static Process this_process();

  std::size_t mine_ = 0;
  std::vector<Process> processes_;  ///< by rank
};

}  // namespace ringlab::mpi
