// A group of ranks over NCCL keeps its deadlines and says what happened, with a NCCL of our own.
#include "optimized/transport/nccl/nccl_group.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "optimized/transport/nccl/nccl_library.h"
#include "reference/core/error.h"
#include "tests/optimized/transport/fake_nccl.h"
#include "tests/optimized/transport/hall.h"

namespace ringlab::nccl {
namespace {

using std::chrono::milliseconds;

constexpr const char* kSharesVariable = "NCCL_MULTI_RANK_GPU_ENABLE";

class NcclGroup : public testing::Test {
 protected:
  void SetUp() override {
    reset_fake_nccl();
    ::unsetenv(kSharesVariable);
  }
  void TearDown() override { ::unsetenv(kSharesVariable); }
};

GroupPlace place(int rank, int ranks, const std::string& device, int deadline_ms = 10000) {
  return {.rank = rank, .ranks = ranks, .device = device, .deadline = milliseconds(deadline_ms)};
}

/// `work(group, rank)` on every rank; returns the errors' texts.
template <class Work>
std::vector<std::string> on_all_ranks(int ranks, int deadline_ms, Work work) {
  Hall hall(ranks);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Group group(place(rank, ranks, "device " + std::to_string(rank), deadline_ms),
                    hall.of(rank));
        work(group, rank);
      } catch (const RankError& error) {
        EXPECT_EQ(error.failure().rank, rank);
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

TEST_F(NcclGroup, passes_memory_round_a_ring) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    reset_fake_nccl();
    std::vector<std::array<std::byte, 3>> memory(static_cast<std::size_t>(ranks));
    std::vector<std::array<std::byte, 3>> slots = memory;
    for (std::size_t rank = 0; rank < memory.size(); ++rank) memory[rank].fill(std::byte(1 + rank));
    const auto errors = on_all_ranks(ranks, 10000, [&](Group& group, int rank) {
      if (ranks == 1) return;
      CUstream_st stream;
      const auto at = static_cast<std::size_t>(rank);
      const std::vector<GroupMessage> parts = {
          {Side::send, (rank + 1) % ranks, memory[at].data(), 3},
          {Side::receive, (rank + ranks - 1) % ranks, slots[at].data(), 3},
          {Side::send, rank, nullptr, 0}};
      group.exchange(parts, &stream, "round 1");
      group.wait([&] { return messages_left(&stream) == 0; }, "round 1");
    });
    for (std::size_t rank = 0; rank < slots.size(); ++rank) {
      EXPECT_EQ(errors[rank], "");
      EXPECT_EQ(slots[(rank + 1) % slots.size()], ranks > 1 ? memory[rank] : slots[rank]);
    }
    EXPECT_EQ(fake_nccl().messages, ranks == 1 ? 0 : 2 * ranks);
    EXPECT_EQ(fake_nccl().destroyed, ranks);
    EXPECT_EQ(fake_nccl().aborts, 0);
  }
}

TEST_F(NcclGroup, without_a_rank_that_never_comes_ends_at_its_deadline) {
  const TellAll alone = [](const std::string& mine) { return std::vector{mine, mine + "x"}; };
  try {
    Group group(place(0, 2, "device 0", 20), alone);
    FAIL() << "it did connect";
  } catch (const RankError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_EQ(error.failure().operation, "connect 2 ranks");
    EXPECT_EQ(error.failure().reason, "no end within 20 ms");
    EXPECT_GE(error.failure().elapsed_s, 0.02);
  }
  EXPECT_EQ(fake_nccl().aborts, 1);
}

TEST_F(NcclGroup, with_a_message_that_is_never_sent_is_aborted_at_the_deadline) {
  const auto errors = on_all_ranks(3, 1000, [](Group& group, int rank) {
    if (rank != 2) return;
    std::byte slot{};
    CUstream_st stream;
    const std::vector<GroupMessage> parts = {{Side::receive, 1, &slot, 1}};
    group.exchange(parts, &stream, "round 4, receive 1 from rank 1");
    EXPECT_THROW(
        group.wait([&] { return messages_left(&stream) == 0; }, "round 4, receive 1 from rank 1"),
        RankError);
    group.exchange(parts, &stream, "round 5");
  });
  EXPECT_EQ(errors[0] + errors[1], "");
  EXPECT_NE(errors[2].find("round 5"), std::string::npos) << errors[2];
  EXPECT_NE(errors[2].find("aborted before"), std::string::npos) << errors[2];
  EXPECT_EQ(fake_nccl().aborts, 1);
  EXPECT_EQ(fake_nccl().destroyed, 2);
}

// Its owner may have to let go of a graph first.
TEST_F(NcclGroup, that_failed_is_aborted_when_its_owner_says_so_or_at_its_end) {
  for (const bool by_owner : {true, false}) {
    reset_fake_nccl();
    const auto errors = on_all_ranks(1, 20, [&](Group& group, int) {
      EXPECT_THROW(group.wait([] { return false; }, "round 1"), RankError);
      EXPECT_EQ(fake_nccl().aborts, 0);
      if (by_owner) group.abort();
      EXPECT_EQ(fake_nccl().aborts, by_owner ? 1 : 0);
      group.check("round 2");
    });
    EXPECT_NE(errors[0].find("failed or was aborted before"), std::string::npos) << errors[0];
    EXPECT_EQ(fake_nccl().aborts, 1);
    EXPECT_EQ(fake_nccl().destroyed, 0);
  }
}

TEST_F(NcclGroup, that_lost_a_rank_says_so_long_before_the_deadline) {
  const auto errors = on_all_ranks(2, 60000, [](Group& group, int rank) {
    if (rank != 1) return;
    fake_nccl().failing_rank = 1;
    group.wait([] { return false; }, "round 2");
  });
  EXPECT_NE(errors[1].find("round 2"), std::string::npos) << errors[1];
  EXPECT_NE(errors[1].find("remote process exited (the last words)"), std::string::npos)
      << errors[1];
}

TEST_F(NcclGroup, ends_its_group_and_aborts_when_a_part_is_refused) {
  const auto errors = on_all_ranks(2, 10000, [](Group& group, int rank) {
    std::byte value{};
    CUstream_st stream;
    const std::vector<GroupMessage> parts = {{Side::send, 7, &value, 1}};
    if (rank == 0) group.exchange(parts, &stream, "round 1");
  });
  EXPECT_NE(errors[0].find("invalid argument (the last words)"), std::string::npos) << errors[0];
  EXPECT_EQ(fake_nccl().aborts, 1);
}

/// What the second of two ranks is told, which say that they are on these devices. `edit`: of what
/// the first says before that.
std::string refusal(const std::string& first, const std::string& second,
                    const std::function<void(std::string&)>& edit = {}) {
  const TellAll two = [&](const std::string& mine) {
    std::string id = mine.substr(0, mine.size() - second.size());
    if (edit) edit(id);
    return std::vector{id + first, mine};
  };
  try {
    Group group(place(1, 2, second, 20), two);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "";
}

TEST_F(NcclGroup, of_two_ranks_on_a_device_is_refused_before_nccl_hangs_unless_it_is_new) {
  const std::string text = refusal("a 0000:17:00.0", "a 0000:17:00.0");
  EXPECT_NE(text.find("a device for every rank, or NCCL 2.30"), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL 2.28.9"), std::string::npos) << text;
  EXPECT_NE(text.find("of ranks 0 and 1"), std::string::npos) << text;
  EXPECT_EQ(fake_nccl().inits, 0);
  EXPECT_NE(refusal("a 0000:17:00.0", "b 0000:17:00.0").find("no end within"), std::string::npos);
  EXPECT_EQ(fake_nccl().inits, 1);
}

TEST_F(NcclGroup, of_two_ranks_on_a_device_wants_a_new_nccl_to_be_told_so_by_all_ranks) {
  fake_nccl().version = 23000;
  const auto expect_refused = [](const std::string& text) {
    EXPECT_NE(text.find("NCCL_MULTI_RANK_GPU_ENABLE=1 for all ranks"), std::string::npos) << text;
    EXPECT_EQ(fake_nccl().inits, 0);
  };
  expect_refused(refusal("a", "a"));
  ::setenv(kSharesVariable, "0", 1);
  expect_refused(refusal("a", "a"));
  ::setenv(kSharesVariable, "1", 1);
  const std::string text =
      refusal("a", "a", [](std::string& said) { said.replace(said.rfind(" 1 "), 3, " 0 "); });
  expect_refused(text);
  EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
  EXPECT_NE(refusal("a", "a").find("no end within"), std::string::npos);  // the other never comes
  EXPECT_EQ(fake_nccl().inits, 1);
}

TEST_F(NcclGroup, limits_the_thread_blocks_of_messages_to_what_is_asked_for) {
  const Group group({.rank = 0, .ranks = 1, .device = "a", .most_blocks = 2},
                    [](const std::string& mine) { return std::vector<std::string>{mine}; });
  EXPECT_EQ(fake_nccl().most_blocks, 2);
}

TEST_F(NcclGroup, limits_the_thread_blocks_of_messages_where_ranks_share_a_device) {
  fake_nccl().version = 23000;
  ::setenv(kSharesVariable, "1", 1);
  EXPECT_NE(refusal("a", "b").find("no end within"), std::string::npos);
  EXPECT_LT(fake_nccl().most_blocks, 0);  // as NCCL likes
  reset_fake_nccl();
  fake_nccl().version = 23000;
  EXPECT_NE(refusal("a", "a").find("no end within"), std::string::npos);
  EXPECT_GE(fake_nccl().most_blocks, 1);
  EXPECT_LE(fake_nccl().most_blocks, 8);
}

TEST_F(NcclGroup, does_not_begin_with_introductions_that_are_missing_or_cut_off) {
  const auto group_of = [](std::vector<std::string> texts) {
    Group group(place(0, 2, "d", 20), [&](const std::string&) { return texts; });
  };
  EXPECT_THROW(group_of({"short", "short"}), Error);
  EXPECT_THROW(group_of({std::string(200, 'a')}), Error);
  EXPECT_EQ(fake_nccl().inits, 0);
}

TEST_F(NcclGroup, is_of_one_release_of_nccl) {
  const TellAll mixed = [](const std::string& mine) {
    std::string other = mine;
    other.replace(other.find("22809"), 5, "22705");
    return std::vector{other, mine + "x"};
  };
  try {
    Group group(place(1, 2, "device 0", 20), mixed);
    FAIL() << "it did connect";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("expected NCCL 2.27.5, which rank 0 has, found NCCL 2.28.9"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(fake_nccl().inits, 0);
}

TEST_F(NcclGroup, is_aborted_as_soon_as_another_rank_is_known_to_have_failed) {
  for (const bool connects : {true, false}) {
    reset_fake_nccl();
    GroupPlace alone = place(0, connects ? 1 : 2, "device 0", 60000);
    alone.check_others = [&, asked = 0](const std::string& operation) mutable {
      if (++asked < (connects ? 20 : 5)) return;
      throw RankError({.rank = 0, .suspect = 1, .operation = operation, .reason = "rank 1 failed"});
    };
    try {
      Group group(alone, [&](const std::string& mine) {
        return connects ? std::vector{mine} : std::vector{mine, mine + "x"};
      });
      group.wait([] { return false; }, "wait for the device");
      FAIL() << "it did end";
    } catch (const RankError& error) {
      EXPECT_EQ(error.failure().operation, connects ? "wait for the device" : "connect 2 ranks");
    }
    EXPECT_EQ(fake_nccl().aborts, 1);
    EXPECT_EQ(fake_nccl().destroyed, 0);
  }
}

TEST_F(NcclGroup, says_which_library_it_has_and_refuses_other_series) {
  EXPECT_EQ(require_nccl().substr(0, 8), "2.28.9 (");
  EXPECT_NE(require_nccl().find("fake_nccl"), std::string::npos);
  for (const auto& [version, text] :
       {std::pair{21399, "2.13.99"}, {2807, "2.8.7"}, {30000, "3.0.0"}}) {
    fake_nccl().version = version;
    try {
      open_library(library_name());
      ADD_FAILURE() << version;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("expected NCCL 2.14 or a newer 2.x, found NCCL " + std::string(text)),
                std::string::npos)
          << said;
    }
  }
  fake_nccl().version = 21400;
  EXPECT_EQ(open_library(library_name()).version, 21400);
}

}  // namespace
}  // namespace ringlab::nccl
