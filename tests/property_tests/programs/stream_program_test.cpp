// What a stream program looks like, and what it cannot be made of.
#include "optimized/ring/streams/stream_program.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/core/schedule/schedule_costs.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::ring {
namespace {

/// "C2" by "rank . stream", one operation after another; events are left out of records.
std::string listing(const StreamProgram& program, int rank, StreamKind stream) {
  std::string text;
  for (const StreamOperation& o : program.operations) {
    if (o.rank != rank || o.stream != stream) continue;
    text += text.empty() ? "" : ", ";
    if (o.action == StreamAction::attend) text += "attend " + std::to_string(o.owner);
    if (o.action == StreamAction::copy) text += "copy " + std::to_string(o.owner);
    if (o.action == StreamAction::add_gradient) text += "add " + std::to_string(o.owner);
    if (o.action == StreamAction::record) text += "record";
    if (o.action == StreamAction::wait) text += "wait";
  }
  return text;
}

TEST(StreamProgram, of_a_ring_overlaps_copies_and_computing) {
  const Schedule schedule = build_schedule({}, full_need(4), Pass::forward);
  const StreamProgram program = make_stream_program(schedule, CopyBy::receiver);
  EXPECT_EQ(listing(program, 1, StreamKind::compute),
            "attend 1, wait, attend 0, record, wait, attend 3, wait, attend 2");
  // Chunk 3 waits for its source only; chunk 2 also for its slot: the attend to chunk 0, and rank
  // 2's copy out of it.
  EXPECT_EQ(listing(program, 1, StreamKind::chunks),
            "copy 0, record, wait, copy 3, record, wait, wait, wait, copy 2, record");
  EXPECT_EQ(listing(program, 1, StreamKind::sums), "");
}

TEST(StreamProgram, of_one_rank_is_one_attend) {
  const Schedule schedule = build_schedule({}, full_need(1), Pass::backward);
  const StreamProgram program = make_stream_program(schedule, CopyBy::sender);
  ASSERT_EQ(program.operations.size(), 1u);
  EXPECT_EQ(place(program.operations.front()),
            "rank 0, step 0, attend to chunk 0 in rank 0 own chunk");
  EXPECT_EQ(program.events, 0);
}

TEST(StreamProgram, copies_as_much_as_the_schedule_sends) {
  for (const ScheduleSpec& spec : every_spec(5, 2)) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const Schedule schedule = build_schedule(spec, causal_need(5), pass);
      const ScheduleCosts costs = count_schedule(schedule, some_lengths(5));
      std::int64_t chunks = 0, sums = 0, due_chunks = 0, due_sums = 0;
      for (const RankCosts& rank : costs.ranks) {
        due_chunks += rank.kv_received.chunks;
        due_sums += rank.gradients_received.chunks;
      }
      for (const StreamOperation& o : make_stream_program(schedule, CopyBy::receiver).operations) {
        if (o.action != StreamAction::copy) continue;
        ++(o.payload == Payload::chunk ? chunks : sums);
      }
      EXPECT_EQ(chunks, due_chunks) << text_of(spec, 5, pass);
      EXPECT_EQ(sums, due_sums) << text_of(spec, 5, pass);
    }
  }
}

TEST(StreamProgram, is_the_same_work_whoever_copies) {
  const Schedule schedule = build_schedule({}, full_need(5), Pass::backward);
  const auto work = [&](CopyBy copy_by) {
    std::vector<std::string> places;
    for (const StreamOperation& o : make_stream_program(schedule, copy_by).operations) {
      if (touches_slots(o)) places.push_back(place(o));
    }
    return places;
  };
  EXPECT_EQ(work(CopyBy::receiver), work(CopyBy::sender));
}

TEST(StreamProgram, of_a_schedule_that_cannot_end_is_refused) {
  Schedule schedule = build_schedule({}, full_need(3), Pass::forward);
  std::erase_if(schedule.ranks[1].operations,
                [](const Operation& o) { return o.verb == Verb::post_send; });
  EXPECT_THROW(make_stream_program(schedule, CopyBy::receiver), Error);
}

}  // namespace
}  // namespace ringlab::ring
