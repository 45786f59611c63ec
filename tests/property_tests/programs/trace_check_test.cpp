#include "property_tests/programs/trace_check.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/core/schedule/operation_words.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab {
namespace {

using Trace = std::vector<std::vector<TraceEvent>>;

/// The trace of ranks that do one thing per microsecond, all in program order. Messages arrive just
/// before they are waited for.
class Recorder {
 public:
  explicit Recorder(const Schedule& schedule) : schedule_(schedule) {}

  Trace record() {
    Trace trace;
    for (int rank = 0; rank < static_cast<int>(schedule_.ranks.size()); ++rank) {
      trace.push_back(record_rank(rank));
    }
    return trace;
  }

 private:
  static TraceKind kind_of(const Operation& operation) {
    if (operation.verb == Verb::compute) return TraceKind::compute;
    if (operation.verb == Verb::add) return TraceKind::add;
    return is_send(operation) ? TraceKind::send : TraceKind::receive;
  }
  std::vector<TraceEvent> record_rank(int rank) {
    std::vector<TraceEvent> events;
    std::int64_t now = 0;
    for (const Operation& operation : schedule_.ranks[static_cast<std::size_t>(rank)].operations) {
      now += 1000;
      TraceEvent event{.kind = kind_of(operation),
                       .rank = rank,
                       .step = operation.step,
                       .owner = operation.owner,
                       .peer = operation.peer,
                       .slot = slot_of(operation),
                       .gradient = concerns_gradients(operation),
                       .pass = schedule_.pass,
                       .bytes = operation.peer == kNobody ? 0 : 100 + operation.owner,
                       .begin_ns = now,
                       .end_ns = now + 1000};
      if (is_wait(operation)) {
        end_message(events, event);
      } else {
        events.push_back(event);
      }
    }
    return events;
  }

  static void end_message(std::vector<TraceEvent>& events, TraceEvent wait) {
    for (TraceEvent& event : events) {
      const bool same = event.kind == wait.kind && event.gradient == wait.gradient &&
                        event.owner == wait.owner && event.peer == wait.peer;
      if (same) event.end_ns = wait.end_ns;
    }
    wait.kind = TraceKind::wait;
    events.push_back(wait);
  }

  const Schedule& schedule_;
};

TEST(TraceCheck, a_run_that_follows_its_schedule_is_accepted) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (const ScheduleSpec& spec : every_spec(ranks, 2)) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const Schedule schedule = build_schedule(spec, causal_need(ranks), pass);
        const auto findings = check_trace(Recorder(schedule).record(), schedule);
        ASSERT_TRUE(findings.empty()) << text_of(spec, ranks, pass) << "\n" << joined(findings);
      }
    }
  }
}

RC_GTEST_PROP(TraceCheck, the_order_in_which_events_are_listed_does_not_matter, ()) {
  const int ranks = random_int(1, 6);
  const Schedule schedule = build_schedule(random_spec(ranks), random_need(ranks), Pass::backward);
  Trace trace = Recorder(schedule).record();
  for (auto& events : trace) std::ranges::reverse(events);
  RC_ASSERT(check_trace(trace, schedule).empty());
}

/// A full ring of 4 ranks with 2 slots, and one of rank 1's events.
class WrongTrace : public testing::Test {
 protected:
  TraceEvent& event(TraceKind kind, int step, bool gradient = false) {
    for (TraceEvent& each : trace_[1]) {
      if (each.kind == kind && each.step == step && each.gradient == gradient) return each;
    }
    throw std::runtime_error("no such event");
  }
  void expect(const std::string& place, const std::string& reason) {
    const auto findings = check_trace(trace_, schedule_);
    EXPECT_TRUE(std::ranges::any_of(findings, [&](const std::string& finding) {
      return finding.find(place) != std::string::npos && finding.find(reason) != std::string::npos;
    })) << joined(findings);
  }
  Schedule schedule_ = build_schedule({}, full_need(4), Pass::backward);
  Trace trace_ = Recorder(schedule_).record();
};

TEST_F(WrongTrace, a_compute_that_began_before_its_chunk_was_there) {
  event(TraceKind::compute, 2).begin_ns = event(TraceKind::receive, 2).end_ns - 1;
  expect("rank 1, step 2: compute chunk 3", "before the end of step 2: receive chunk 3");
}
TEST_F(WrongTrace, a_receive_into_a_slot_that_is_computed_on) {
  event(TraceKind::receive, 3).begin_ns = event(TraceKind::compute, 1).end_ns - 1;
  expect("rank 1, step 3: receive chunk 2", "before the end of step 1: compute chunk 0");
}
TEST_F(WrongTrace, a_receive_into_a_slot_that_is_sent_from) {
  event(TraceKind::send, 1).end_ns = event(TraceKind::receive, 3).begin_ns + 1;
  expect("rank 1, step 3: receive chunk 2", "before the end of step 1: send chunk 0");
}
TEST_F(WrongTrace, a_send_that_began_before_its_chunk_was_there) {
  event(TraceKind::send, 1).begin_ns = event(TraceKind::receive, 1).end_ns - 1;
  expect("rank 1, step 1: send chunk 0", "before the end of step 1: receive chunk 0");
}
TEST_F(WrongTrace, computes_out_of_order) {
  std::swap(event(TraceKind::compute, 2).begin_ns, event(TraceKind::compute, 3).begin_ns);
  std::swap(event(TraceKind::compute, 2).end_ns, event(TraceKind::compute, 3).end_ns);
  expect("rank 1, step 3: compute chunk 2", "began before the end of step 2");
}
TEST_F(WrongTrace, a_compute_that_is_missing) {
  const TraceEvent lost = event(TraceKind::compute, 2);
  std::erase_if(trace_[1], [&](const TraceEvent& each) {
    return each.kind == lost.kind && each.owner == lost.owner;
  });
  expect("rank 1, step 2: compute of chunk 3", "was not recorded");
}
TEST_F(WrongTrace, a_compute_that_the_schedule_does_not_have) {
  trace_[1].push_back(event(TraceKind::compute, 2));
  expect("rank 1, step 2: compute chunk 3", "no such operation");
}
TEST_F(WrongTrace, a_message_to_the_wrong_rank) {
  event(TraceKind::send, 1).peer = 3;
  expect("rank 1, step 1: send chunk 0 to rank 3", "no such operation");
  expect("rank 1 to rank 2, chunk 0", "sent 0 messages, 0 bytes, received 1 messages, 100 bytes");
}
TEST_F(WrongTrace, a_message_that_lost_a_byte) {
  --event(TraceKind::receive, 1).bytes;
  expect("rank 0 to rank 1, chunk 0", "sent 1 messages, 100 bytes, received 1 messages, 99 bytes");
}
TEST_F(WrongTrace, a_slot_the_schedule_does_not_name) {
  event(TraceKind::compute, 2).slot = 0;
  expect("rank 1, step 2: compute chunk 3", "it used slot 0, the schedule says 1");
}
TEST_F(WrongTrace, a_step_the_schedule_does_not_name) {
  event(TraceKind::compute, 2).step = 5;
  expect("rank 1, step 5: compute chunk 3", "has it in step 2");
}
TEST_F(WrongTrace, a_sum_of_gradients_changed_while_it_is_sent) {
  event(TraceKind::send, 1, true).end_ns = event(TraceKind::compute, 3).begin_ns + 1;
  expect("rank 1, step 3: compute chunk 2", "before the end of step 1: send gradients of chunk 0");
}
TEST_F(WrongTrace, a_sum_of_gradients_added_before_it_was_there) {
  event(TraceKind::add, 2, true).begin_ns = event(TraceKind::receive, 2, true).end_ns - 1;
  expect("rank 1, step 2: add gradients of chunk 3", "before the end of step 2: receive gradients");
}
TEST_F(WrongTrace, an_event_that_ends_before_it_begins) {
  event(TraceKind::send, 0).end_ns = 0;
  expect("rank 1, step 0: send chunk 1", "ends before it begins");
}
TEST_F(WrongTrace, an_event_of_another_rank) {
  event(TraceKind::compute, 0).rank = 2;
  expect("rank 1, step 0: compute chunk 1", "it says rank 2");
}
TEST_F(WrongTrace, events_of_another_number_of_ranks) {
  trace_.pop_back();
  EXPECT_EQ(joined(check_trace(trace_, schedule_)), "events of 3 ranks for a schedule of 4\n");
}
TEST_F(WrongTrace, events_of_the_other_pass_are_no_part_of_it) {
  for (auto& events : trace_) {
    for (TraceEvent& each : events) each.pass = Pass::forward;
  }
  expect("rank 1, step 2: compute of chunk 3", "was not recorded");
}

}  // namespace
}  // namespace ringlab
