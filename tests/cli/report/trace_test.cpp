// Traces: the file format, what is read out of them, and their pictures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "cli/report/trace/trace_picture.h"
#include "reference/core/error.h"

namespace ringlab::report {
namespace {

TraceEvent event(TraceKind kind, int rank, std::int64_t begin_ns, std::int64_t end_ns) {
  TraceEvent made{.kind = kind, .rank = rank};
  made.begin_ns = begin_ns;
  made.end_ns = end_ns;
  return made;
}

TraceEvent receive(int from, int to, std::int64_t begin_ns, std::int64_t end_ns) {
  TraceEvent made = event(TraceKind::receive, to, begin_ns, end_ns);
  made.peer = from;
  made.bytes = 100;
  return made;
}

int places(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// Rank 0 computes for 0 … 100 and 150 … 200 of 200 ns, with messages in flight for 50 … 150.
Trace half_hidden() {
  return {event(TraceKind::compute, 0, 0, 100), receive(1, 0, 50, 150),
          event(TraceKind::send, 0, 60, 140), event(TraceKind::wait, 0, 100, 150),
          event(TraceKind::compute, 0, 150, 200)};
}

bool same(const TraceEvent& a, const TraceEvent& b) {
  return a.kind == b.kind && a.rank == b.rank && a.step == b.step && a.owner == b.owner &&
         a.peer == b.peer && a.slot == b.slot && a.gradient == b.gradient && a.pass == b.pass &&
         a.bytes == b.bytes && a.begin_ns == b.begin_ns && a.end_ns == b.end_ns;
}

TEST(TraceJson, what_is_written_is_read_back_to_the_nanosecond) {
  std::mt19937_64 random(5);
  const auto pick = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  Trace trace;
  for (int i = 0; i < 2000; ++i) {
    TraceEvent made = event(static_cast<TraceKind>(pick(5)), static_cast<int>(pick(70)), 0, 0);
    made.step = static_cast<int>(pick(1000));
    made.owner = static_cast<int>(pick(70));
    made.peer = static_cast<int>(pick(71)) - 1;
    made.slot = static_cast<int>(pick(5)) - 1;
    made.gradient = pick(2) == 1;
    made.pass = pick(2) == 1 ? Pass::backward : Pass::forward;
    made.bytes = pick(std::int64_t{1} << 50);
    made.begin_ns = pick(std::int64_t{1} << (1 + pick(50)));
    made.end_ns = made.begin_ns + pick(std::int64_t{1} << (1 + pick(50)));
    trace.push_back(made);
  }
  const Trace again = parse_trace(trace_json(trace), "t");
  ASSERT_EQ(again.size(), trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) EXPECT_TRUE(same(again[i], trace[i])) << i;
}

TEST(TraceJson, events_are_those_of_the_file_without_the_names_of_lanes) {
  const nlohmann::ordered_json events = events_json(half_hidden());
  ASSERT_EQ(events.size(), 5u);
  const auto file = nlohmann::ordered_json::parse(trace_json(half_hidden()))["traceEvents"];
  EXPECT_EQ(events[1], file[file.size() - 4]);
  EXPECT_EQ(events[1]["cat"], "receive");
}

TEST(TraceJson, no_events_are_a_trace_too) {
  EXPECT_TRUE(parse_trace(trace_json({}), "t").empty());
  EXPECT_EQ(ranks_of({}), 0);
}

TEST(TraceJson, names_every_lane_of_every_rank_once) {
  const std::string text = trace_json({event(TraceKind::compute, 3, 0, 1)});
  EXPECT_EQ(places(text, "thread_name"), kLanes);
  EXPECT_EQ(places(text, "rank 3 receive"), 1);
}

TEST(TraceJson, whatever_is_not_ours_is_an_input_error) {
  for (const char* text :
       {"", "{", "[]", "3", "{\"traceEvents\":3}", "{\"traceEvents\":[3]}",
        "{\"traceEvents\":[null]}", "{\"traceEvents\":[{}]}", "{\"traceEvents\":[{\"ph\":1}]}",
        "{\"traceEvents\":[{\"ph\":\"B\"}]}", "{\"traceEvents\":[{\"ph\":\"X\",\"args\":3}]}"}) {
    EXPECT_THROW(parse_trace(text, "t"), Error) << text;
  }
}

TEST(TraceJson, each_wrong_member_is_an_input_error_that_names_event_and_member) {
  using Json = nlohmann::ordered_json;
  const std::string right = trace_json(half_hidden());
  const auto first = static_cast<std::size_t>(kLanes) + 1;  // behind the metadata
  const auto refused = [&](const std::string& member, bool in_args, const Json& value) {
    Json document = Json::parse(right);
    Json& made = document["traceEvents"][first];
    if (value.is_null()) {
      (in_args ? made["args"] : made).erase(member);
    } else {
      (in_args ? made["args"] : made)[member] = value;
    }
    try {
      parse_trace(document.dump(), "t");
      ADD_FAILURE() << member << " = " << value << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      const std::string what = error.what();
      EXPECT_NE(what.find("event " + std::to_string(first)), std::string::npos) << what;
      EXPECT_NE(what.find("\"" + member + "\""), std::string::npos) << what;
    }
  };
  for (const char* member : {"rank", "step", "owner", "peer", "slot", "bytes"}) {
    for (const Json& value :
         {Json(), Json("1"), Json(1.5), Json(-2), Json(1e30), Json(UINT64_MAX), Json(INT64_MAX)}) {
      refused(member, true, value);
    }
  }
  for (const char* member : {"ts", "dur"}) {
    for (const Json& value : {Json(), Json("1"), Json(-1), Json(1e300)}) {
      refused(member, false, value);
    }
  }
  for (const Json& value : {Json(), Json(1), Json("sideways")}) refused("pass", true, value);
  for (const Json& value : {Json(), Json(1), Json("sideways")}) refused("cat", false, value);
  for (const Json& value : {Json(), Json(1), Json("true")}) refused("gradient", true, value);
  for (const Json& value : {Json(), Json(1), Json(-1), Json("0")}) refused("tid", false, value);
}

TEST(Spread, percentiles_are_values_that_occurred) {
  EXPECT_EQ(spread_of({}).count, 0);
  EXPECT_EQ(spread_of({7}).p50_ns, 7);
  EXPECT_EQ(spread_of({7}).p99_ns, 7);
  EXPECT_EQ(spread_of({4, 1, 3, 2}).p50_ns, 2);
  std::vector<std::int64_t> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(spread_of(hundred).p50_ns, 50);
  EXPECT_EQ(spread_of(hundred).p99_ns, 99);
}

TEST(TraceSummary, overlap_is_the_share_of_time_in_flight_that_was_computed_in) {
  const TraceSummary summary = summarize(half_hidden());
  const RankSummary& rank = summary.ranks[0];
  EXPECT_EQ(summary.span_ns, 200);
  EXPECT_EQ(rank.compute_ns, 150);
  EXPECT_EQ(rank.in_flight_ns, 100);  // the send lies within the receive
  EXPECT_EQ(rank.covered_ns, 50);
  EXPECT_EQ(rank.wait_ns, 50);
  EXPECT_EQ(rank.bytes_received, 100);
  EXPECT_DOUBLE_EQ(*summary.overlap(), 0.5);
  EXPECT_DOUBLE_EQ(summary.idle(), 0.25);
}

TEST(TraceSummary, all_hidden_and_nothing_hidden_are_one_and_zero) {
  EXPECT_EQ(*summarize({event(TraceKind::compute, 0, 0, 10), receive(1, 0, 2, 9)}).overlap(), 1);
  EXPECT_EQ(*summarize({event(TraceKind::compute, 0, 0, 10), receive(1, 0, 10, 20)}).overlap(), 0);
}

TEST(TraceSummary, without_messages_there_is_no_overlap_to_speak_of) {
  const TraceSummary summary = summarize({event(TraceKind::compute, 0, 0, 10)});
  EXPECT_FALSE(summary.overlap());
  EXPECT_FALSE(summary.slowest_link);
  EXPECT_FALSE(summary.straggler);
  EXPECT_EQ(summary.idle(), 0);
  EXPECT_EQ(overlap_text(summary.overlap()), "none in flight");
}

TEST(TraceSummary, sums_of_gradients_count_as_computing_but_not_as_blocks) {
  const TraceSummary summary =
      summarize({event(TraceKind::compute, 0, 0, 10), event(TraceKind::add, 0, 10, 30)});
  EXPECT_EQ(summary.ranks[0].compute_ns, 30);
  EXPECT_EQ(summary.ranks[0].block.count, 1);
}

TEST(TraceSummary, a_rank_without_events_is_idle) {
  const TraceSummary summary = summarize({event(TraceKind::compute, 2, 0, 10)});
  ASSERT_EQ(summary.ranks.size(), 3u);
  EXPECT_EQ(summary.ranks[0].idle(), 1);
  EXPECT_EQ(summary.ranks[2].idle(), 0);
}

TEST(TraceSummary, a_straggler_is_a_rank_more_than_a_half_above_the_median_of_the_others) {
  const auto with_slowest = [](std::int64_t length) {
    Trace trace;
    for (int rank = 0; rank < 5; ++rank) {
      trace.push_back(event(TraceKind::compute, rank, 0, rank == 3 ? length : 100));
    }
    return summarize(trace);
  };
  EXPECT_FALSE(with_slowest(150).straggler);
  ASSERT_TRUE(with_slowest(151).straggler);
  EXPECT_EQ(*with_slowest(151).straggler, 3);
  EXPECT_DOUBLE_EQ(with_slowest(125).straggler_ratio, 1.25);
}

TEST(TraceSummary, the_slowest_link_has_the_largest_median) {
  const TraceSummary summary =
      summarize({receive(0, 1, 0, 10), receive(0, 1, 0, 10), receive(0, 1, 0, 90),
                 receive(1, 2, 0, 30), receive(1, 2, 0, 30), receive(2, 0, 0, 20)});
  ASSERT_EQ(summary.links.size(), 3u);
  const LinkSummary& slowest = summary.links[*summary.slowest_link];
  EXPECT_EQ(slowest.from, 1);
  EXPECT_EQ(slowest.to, 2);
  EXPECT_EQ(slowest.receive.count, 2);
  EXPECT_EQ(slowest.bytes, 200);
}

TEST(TraceSummary, an_empty_trace_has_an_empty_summary) {
  EXPECT_TRUE(summarize({}).ranks.empty());
  EXPECT_EQ(summarize({}).idle(), 0);
}

TEST(TracePicture, has_one_box_per_event_and_one_track_per_lane) {
  const Trace trace = half_hidden();
  const std::string svg = trace_svg_file(trace, summarize(trace));
  EXPECT_EQ(places(svg, "class=\"event "), static_cast<int>(trace.size()));
  EXPECT_EQ(places(svg, "class=\"track\""), kLanes);
  EXPECT_EQ(places(svg, "<title>"), static_cast<int>(trace.size()));
}

TEST(TracePicture, nothing_and_moments_without_length_are_drawn_with_finite_numbers) {
  for (const Trace& trace : {Trace{}, Trace{event(TraceKind::compute, 0, 5, 5)}, half_hidden()}) {
    const std::string svg = trace_svg_file(trace, summarize(trace));
    EXPECT_EQ(places(svg, "=\"nan") + places(svg, "=\"-nan") + places(svg, "=\"inf"), 0);
    EXPECT_EQ(places(svg, "<svg "), 1);
    EXPECT_EQ(places(svg, "xmlns="), 1);
  }
}

}  // namespace
}  // namespace ringlab::report
