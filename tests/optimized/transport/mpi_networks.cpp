#include "tests/optimized/transport/mpi_networks.h"

#include <mpi.h>

#include <cstdio>

namespace ringlab {
namespace {

constexpr int kTrafficFields = 4;

std::vector<Traffic> gathered(const Traffic& mine, int ranks) {
  const std::int64_t fields[kTrafficFields] = {mine.sent_bytes, mine.sent_messages,
                                               mine.received_bytes, mine.received_messages};
  int world = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  std::vector<std::int64_t> all(static_cast<std::size_t>(world) * kTrafficFields);
  MPI_Allgather(fields, kTrafficFields, MPI_INT64_T, all.data(), kTrafficFields, MPI_INT64_T,
                MPI_COMM_WORLD);
  std::vector<Traffic> traffic;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const std::int64_t* of_rank = &all[rank * kTrafficFields];
    traffic.push_back({.sent_bytes = of_rank[0],
                       .sent_messages = of_rank[1],
                       .received_bytes = of_rank[2],
                       .received_messages = of_rank[3]});
  }
  return traffic;
}

}  // namespace

NetworkSummary run_on_job(int ranks, const MpiOptions& options,
                          const std::function<void(mpi::MpiCommunicator&)>& body) {
  int world_rank = 0;
  int world_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  if (ranks > world_ranks) {
    ADD_FAILURE() << "start this program with mpirun -n " << ranks << " or more";
    return {};
  }
  const int color = world_rank < ranks ? 0 : MPI_UNDEFINED;
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, world_rank, &group);
  Traffic mine;
  if (group != MPI_COMM_NULL) {
    mpi::MpiCommunicator network(group, options);
    body(network);
    mine = network.traffic();
    MPI_Barrier(group);  // nobody's buffers die before all is over
  }
  NetworkSummary summary;
  summary.traffic = gathered(mine, ranks);
  return summary;
}

std::vector<AnyNetwork> every_network() {
  // Short pieces split the longer messages; the usual size splits none.
  std::vector<AnyNetwork> networks;
  for (const std::int64_t piece_bytes : {std::int64_t{1} << 30, std::int64_t{1021}}) {
    const auto run = [piece_bytes](int ranks, const RankBody& body, double timeout_s) {
      const MpiOptions options{.timeout_s = timeout_s, .piece_bytes = piece_bytes};
      return run_on_job(ranks, options, body);
    };
    networks.push_back(
        {.name = "mpi_pieces_of_" + std::to_string(piece_bytes), .run_elsewhere = run});
  }
  return networks;
}

}  // namespace ringlab

int main(int argc, char** argv) {
  int level = 0;  // communicators have a thread of their own, and calls of the tests are beside it
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) {
    std::puts("SKIPPED: this MPI is not for several threads");
    MPI_Finalize();
    return 77;
  }
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  int failed = RUN_ALL_TESTS();
  int any_failed = 0;
  MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any_failed;
}
