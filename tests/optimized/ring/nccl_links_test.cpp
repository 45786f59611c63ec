// Messages of a rank over NCCL: two communicators that go down together. NCCL is threads and
// memory.
#include "optimized/ring/messages/nccl_links.h"

#include <gtest/gtest.h>

#include <thread>

#include "reference/core/error.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/optimized/transport/fake_nccl.h"
#include "tests/optimized/transport/hall.h"

namespace ringlab::ring {
namespace {

using nccl::fake_nccl;

/// `work(links, rank)` on two ranks; returns the errors' texts.
template <class Work>
std::vector<std::string> on_two_ranks(int deadline_ms, Work work) {
  nccl::reset_fake_nccl();
  fake_devices() = {
      .has_ended = [](cuda::Stream stream) { return nccl::messages_left(stream) == 0; }};
  Hall chunks(2), sums(2);
  std::vector<std::string> errors(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        NcclLinks links({.rank = rank,
                         .ranks = 2,
                         .device = std::to_string(rank),
                         .deadline = std::chrono::milliseconds(deadline_ms)},
                        0, chunks.of(rank), sums.of(rank));
        work(links, rank);
      } catch (const RankError& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

std::vector<DeviceMessage> swap_with(int peer, std::byte* out, std::byte* in) {
  return {{MessageSide::send, peer, out, 1}, {MessageSide::receive, peer, in, 1}};
}

TEST(NcclLinks, keep_chunks_and_sums_apart) {
  std::byte sent[2][2] = {{std::byte{1}, std::byte{2}}, {std::byte{3}, std::byte{4}}};
  std::byte received[2][2] = {};
  const auto errors = on_two_ranks(10000, [&](NcclLinks& links, int rank) {
    CUstream_st chunks, sums;
    const auto chunk = swap_with(1 - rank, &sent[rank][0], &received[rank][0]);
    const auto sum = swap_with(1 - rank, &sent[rank][1], &received[rank][1]);
    // The ranks issue them in different orders; one communicator would mix them up.
    if (rank == 0) links.exchange(StreamKind::chunks, chunk, &chunks, "chunks");
    links.exchange(StreamKind::sums, sum, &sums, "sums");
    if (rank == 1) links.exchange(StreamKind::chunks, chunk, &chunks, "chunks");
    links.wait(&chunks);
    links.wait(&sums);
  });
  EXPECT_EQ(errors[0] + errors[1], "");
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(received[rank][i], sent[1 - rank][i]);
  }
  EXPECT_EQ(fake_nccl().destroyed, 4);
}

TEST(NcclLinks, are_both_aborted_when_a_message_never_comes) {
  const auto errors = on_two_ranks(1000, [](NcclLinks& links, int rank) {
    if (rank != 0) return;
    std::byte slot{};
    CUstream_st stream;
    const std::vector<DeviceMessage> messages = {{MessageSide::receive, 1, &slot, 1}};
    links.exchange(StreamKind::sums, messages, &stream, "sums");
    links.wait(&stream);
  });
  EXPECT_NE(errors[0].find("no end within 1000 ms"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(fake_nccl().aborts, 2);
}

TEST(NcclLinks, notice_the_loss_of_a_rank_on_either_communicator) {
  const auto errors = on_two_ranks(60000, [](NcclLinks& links, int rank) {
    if (rank != 0) return;
    CUstream_st stream;
    std::byte slot{};
    const std::vector<DeviceMessage> messages = {{MessageSide::receive, 1, &slot, 1}};
    links.exchange(StreamKind::chunks, messages, &stream, "chunks");
    fake_nccl().failing_rank = 0;
    links.wait(&stream);
  });
  EXPECT_NE(errors[0].find("remote process exited"), std::string::npos) << errors[0];
  EXPECT_EQ(fake_nccl().aborts, 2);
}

}  // namespace
}  // namespace ringlab::ring
