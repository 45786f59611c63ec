// Ranks that talk through files as the networks of the contract tests; here they are threads.
#include <thread>

#include "optimized/transport/files/file_communicator.h"
#include "tests/optimized/transport/any_network.h"
#include "tests/temporary_folder.h"

namespace ringlab {

std::vector<AnyNetwork> every_network() {
  const auto run = [](int ranks, const RankBody& body, double timeout_s) {
    const TemporaryFolder folder;
    NetworkSummary summary;
    summary.traffic.resize(static_cast<std::size_t>(ranks));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        FileCommunicator network(
            {.folder = folder.path(), .rank = rank, .ranks = ranks, .timeout_s = timeout_s});
        body(network);
        summary.traffic[static_cast<std::size_t>(rank)] = network.traffic();
      });
    }
    threads.clear();
    summary.leftover_messages = std::ssize(folder.files());
    return summary;
  };
  return {{.name = "files", .run_elsewhere = run}};
}

}  // namespace ringlab
