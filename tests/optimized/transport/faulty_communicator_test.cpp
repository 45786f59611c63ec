// Planned faults strike where the plan says and nowhere else.
#include "optimized/transport/faulty_communicator.h"

#include <new>

#include "tests/optimized/transport/any_network.h"

namespace ringlab {
namespace {

// What rank 1 receives when rank 0 sends 1, 2, 3 under this plan.
std::vector<int> received_under(const std::string& plan) {
  std::vector<int> received;
  run_threads(2, {.timeout_s = 5}, [&](Communicator& network) {
    const auto faulty = make_faulty(network, parse_fault_plan(plan));
    for (const int value : {1, 2, 3}) {
      if (network.rank() == 0) {
        send_ints(*faulty, 1, 0, {value});
      } else {
        received.push_back(receive_ints(*faulty, 0, 0, 1)[0]);
      }
    }
  });
  return received;
}

Error error_under(const std::string& plan) {
  try {
    received_under(plan);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << plan << " had no effect";
  return Error(ErrorKind::usage, {});
}

TEST(FaultyCommunicator, flips_exactly_the_planned_bit_of_the_planned_message) {
  EXPECT_EQ(received_under("0:0:before_send:flip=0"), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(received_under("0:1:before_send:flip=4"), (std::vector<int>{1, 18, 3}));
  EXPECT_EQ(received_under("0:2:before_send:flip=-32"), (std::vector<int>{1, 2, 2}));
}

TEST(FaultyCommunicator, replays_the_message_before) {
  EXPECT_EQ(received_under("0:2:before_send:replay"), (std::vector<int>{1, 2, 2}));
}

TEST(FaultyCommunicator, leaves_other_ranks_and_later_events_alone) {
  for (const char* plan : {"1:0:before_send:flip=0", "0:3:before_send:fail", "0:0:in_compute:fail",
                           "7:0:before_send:fail", "0:1:before_send:delay=0.01"}) {
    EXPECT_EQ(received_under(plan), (std::vector<int>{1, 2, 3})) << plan;
  }
}

TEST(FaultyCommunicator, half_a_message_is_an_error_that_names_both_sizes) {
  const std::string text = error_under("0:1:before_send:half").what();
  EXPECT_NE(text.find("a message of 2 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("in 4 bytes"), std::string::npos) << text;
}

TEST(FaultyCommunicator, failures_and_exhausted_memory_end_the_run_with_the_rank_named) {
  for (const char* plan :
       {"0:1:before_send:fail", "1:1:after_receive:fail", "1:2:in_compute:memory"}) {
    const Error error = error_under(plan);
    EXPECT_EQ(error.kind(), ErrorKind::environment) << plan;
    const std::string rank = std::string("rank ") + plan[0];
    EXPECT_NE(std::string(error.what()).find(rank), std::string::npos) << error.what();
  }
}

TEST(FaultyCommunicator, plans_that_make_no_sense_are_usage_errors) {
  for (const char* plan :
       {"", "1", "1:2", "1:2:before_send", "1:2:before_send:explode", "1:2:never:kill",
        "-1:0:before_send:kill", "0:-1:before_send:kill", "x:0:before_send:kill",
        "0:0:before_send:flip=", "0:0:before_send:flip=1x", "0:0:after_receive:flip=1",
        "0:0:in_compute:half", "0:0:before_send:stop=-1", "0:0:before_send:kill:more",
        "0:0:before_send:delay=nan"}) {
    try {
      parse_fault_plan(plan);
      ADD_FAILURE() << plan;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << plan;
    }
  }
}

}  // namespace
}  // namespace ringlab
