// What message programs look like.
#include "optimized/ring/messages/message_program.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::ring {
namespace {

/// What one stream of a rank is given; records are left out.
std::string listing(const MessageProgram& program, StreamKind stream) {
  std::string text;
  for (const MessageOperation& o : program.operations) {
    if (o.stream != stream || o.action == MessageAction::record) continue;
    text += text.empty() ? "" : ", ";
    if (o.action == MessageAction::attend) text += "attend " + std::to_string(o.owner);
    if (o.action == MessageAction::add_gradient) text += "add " + std::to_string(o.owner);
    if (o.action == MessageAction::wait) text += "wait";
    for (const MessageEnd& end : o.ends) {
      text += end.side == MessageSide::send ? "s" : "r";
      text += std::to_string(end.owner);
    }
  }
  return text;
}

std::set<int> rounds_of(const std::vector<MessageProgram>& programs, StreamKind stream) {
  std::set<int> rounds;
  for (const MessageProgram& program : programs) {
    for (const MessageOperation& o : program.operations) {
      if (o.action == MessageAction::exchange && o.stream == stream) rounds.insert(o.step);
    }
  }
  return rounds;
}

TEST(MessageProgram, of_a_ring_sends_and_receives_in_one_group_beside_computing) {
  const auto programs = make_message_programs(build_schedule({}, full_need(4), Pass::forward));
  EXPECT_EQ(listing(programs[1], StreamKind::compute),
            "attend 1, wait, attend 0, wait, attend 3, wait, attend 2");
  // Only the slot of chunk 0, into which chunk 2 comes, is waited for: what is sent arrived on this
  // stream.
  EXPECT_EQ(listing(programs[1], StreamKind::chunks), "r0s1, r3s0, wait, r2s3");
  EXPECT_EQ(listing(programs[1], StreamKind::sums), "");
}

TEST(MessageProgram, of_one_rank_is_one_attend) {
  const auto programs = make_message_programs(build_schedule({}, full_need(1), Pass::backward));
  ASSERT_EQ(programs.size(), 1u);
  ASSERT_EQ(programs[0].operations.size(), 1u);
  EXPECT_EQ(place(0, programs[0].operations.front()), "rank 0, step 0: attend to chunk 0");
}

/// All streams, in the order of issue; records and waits are left out.
std::string issued(const MessageProgram& program) {
  std::string text;
  for (const MessageOperation& o : program.operations) {
    if (o.action == MessageAction::record || o.action == MessageAction::wait) continue;
    text += text.empty() ? "" : ", ";
    text += o.action == MessageAction::exchange ? "exchange " + std::to_string(o.step)
                                                : "attend " + std::to_string(o.owner);
  }
  return text;
}

/// A kernel that keeps all multiprocessors would hold up what is issued after it.
TEST(MessageProgram, issues_an_exchange_before_what_it_does_not_need) {
  const auto two_slots = make_message_programs(build_schedule({}, full_need(4), Pass::forward));
  EXPECT_EQ(issued(two_slots[1]),
            "exchange 1, exchange 2, attend 1, attend 0, exchange 3, attend 3, attend 2");
  const auto one_slot =
      make_message_programs(build_schedule({.slots = 1}, full_need(3), Pass::forward));
  EXPECT_EQ(issued(one_slot[0]), "exchange 1, attend 0, attend 2, exchange 2, attend 1");
}

/// Nobody waits for more rounds than the kind of schedule has exchanges.
TEST(MessageProgram, has_as_many_rounds_of_chunks_as_there_are_exchanges) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const ScheduleSpec& spec : every_spec(ranks, 2)) {
        const auto programs = make_message_programs(build_schedule(spec, full_need(ranks), pass));
        const std::size_t rounds = rounds_of(programs, StreamKind::chunks).size();
        const auto least = static_cast<std::size_t>(
            spec.kind == ScheduleKind::bidirectional ? ranks / 2 : ranks - 1);
        if (spec.kind == ScheduleKind::double_ring) {
          EXPECT_GE(rounds, least) << text_of(spec, ranks, pass);
        } else {
          EXPECT_EQ(rounds, least) << text_of(spec, ranks, pass);
        }
      }
    }
  }
}

TEST(MessageProgram, is_the_same_whoever_copies_in_the_stream_program) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const Schedule schedule = build_schedule({.slots = 3}, causal_need(5), pass);
    const auto by_receivers =
        make_message_programs(make_stream_program(schedule, CopyBy::receiver), 1);
    const auto by_senders = make_message_programs(make_stream_program(schedule, CopyBy::sender), 1);
    ASSERT_EQ(by_receivers.size(), by_senders.size());
    for (std::size_t rank = 0; rank < by_senders.size(); ++rank) {
      EXPECT_EQ(by_receivers[rank].operations, by_senders[rank].operations);
    }
  }
}

TEST(MessageProgram, says_what_an_exchange_is_about) {
  const auto programs = make_message_programs(build_schedule({}, full_need(2), Pass::forward));
  for (const MessageOperation& o : programs[0].operations) {
    if (o.action != MessageAction::exchange) continue;
    const std::string text = place(0, o);
    EXPECT_EQ(text.find("rank 0, round 1: exchange of chunks, "), 0u) << text;
    EXPECT_NE(text.find("send 0 to rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("receive 1 from rank 1"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ringlab::ring
