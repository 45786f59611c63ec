// What a learner might leave out or misplace in a ring on streams: each shows in some order.
#include <map>

#include "tests/stages/streamed_stages.h"

namespace ringlab::stages::testing {
namespace {

constexpr int kSome = 5;  // of 60: no mistake that one order in a thousand shows

using StreamedMistakesTest = StreamedRingTest;
INSTANTIATE_TEST_SUITE_P(All, StreamedMistakesTest, ::testing::ValuesIn(kStreamedStages), name_of);

TEST_P(StreamedMistakesTest, nothing_is_wrong_without_a_mistake) { EXPECT_EQ(wrong_runs(), 0); }

class LeftOutWaitTest : public StreamedRingTest {
 protected:
  static int wrong_runs_without(const char* wait) {
    int left_out = 0;
    ring::event_mistakes().leaves_out_wait = [&](const std::string& where) {
      const bool leaves_out = where.find(wait) != std::string::npos;
      left_out += leaves_out ? 1 : 0;
      return leaves_out;
    };
    const int wrong = wrong_runs();
    EXPECT_GT(left_out, 0) << wait;
    return wrong;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LeftOutWaitTest, ::testing::ValuesIn(kStreamedStages), name_of);

TEST_P(LeftOutWaitTest, a_chunk_computed_on_before_it_is_there_shows) {
  EXPECT_GT(wrong_runs_without("there, before it is computed on"), kSome);
}
TEST_P(LeftOutWaitTest, a_chunk_sent_on_before_it_is_there_shows) {
  EXPECT_GT(wrong_runs_without("there, before it is sent on"), kSome);
}
TEST_P(LeftOutWaitTest, a_slot_reused_before_its_chunk_is_computed_on_shows) {
  EXPECT_GT(wrong_runs_without("computed on, before another one comes"), kSome);
}
TEST_P(LeftOutWaitTest, a_slot_reused_before_its_chunk_is_sent_shows) {
  EXPECT_GT(wrong_runs_without("sent on, before another one comes"), kSome);
}

class MisplacedEventTest : public StreamedRingTest {
 protected:
  /// Events of this kind are recorded on the other stream of their rank.
  static int wrong_runs_with_misplaced(const std::string& kind) {
    std::map<std::string, std::map<std::string, cuda::Stream>> streams;  // by rank, by kind
    ring::event_mistakes().records_on = [&](const std::string& where, cuda::Stream right) {
      const std::string rank = where.substr(0, where.find(':'));
      const std::string event = where.substr(where.rfind(' ') + 1);
      streams[rank][event] = right;
      if (event != kind) return right;
      const auto other = streams[rank].find(kind == "arrived" ? "on" : "arrived");
      return other == streams[rank].end() ? right : other->second;
    };
    return wrong_runs();
  }
};
INSTANTIATE_TEST_SUITE_P(All, MisplacedEventTest, ::testing::ValuesIn(kStreamedStages), name_of);

TEST_P(MisplacedEventTest, arrival_recorded_on_the_compute_stream_shows) {
  EXPECT_GT(wrong_runs_with_misplaced("arrived"), kSome);
}
TEST_P(MisplacedEventTest, the_end_of_computing_recorded_on_the_copy_stream_shows) {
  EXPECT_GT(wrong_runs_with_misplaced("on"), kSome);
}

}  // namespace
}  // namespace ringlab::stages::testing
