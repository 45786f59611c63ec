// A failing case as characters, from events made by hand.
#include "cli/report/retelling_text.h"

#include <gmock/gmock.h>

namespace ringlab::report {
namespace {

using testing::Contains, testing::ElementsAre, testing::HasSubstr, testing::SizeIs;

/// Rank 0 of 2: the own chunk, then the other one, which comes into slot 0.
std::vector<TraceEvent> one_hop() {
  return {
      {.kind = TraceKind::compute, .step = 0, .owner = 0, .begin_ns = 0, .end_ns = 1},
      {.kind = TraceKind::send, .step = 1, .owner = 0, .peer = 1, .begin_ns = 2, .end_ns = 6},
      {.kind = TraceKind::receive,
       .step = 1,
       .owner = 1,
       .peer = 1,
       .slot = 0,
       .begin_ns = 3,
       .end_ns = 5},
      {.kind = TraceKind::wait, .step = 1, .owner = 1, .peer = 1, .begin_ns = 4, .end_ns = 5},
      {.kind = TraceKind::wait, .step = 1, .owner = 0, .peer = 1, .begin_ns = 5, .end_ns = 6},
      {.kind = TraceKind::compute, .step = 1, .owner = 1, .slot = 0, .begin_ns = 6, .end_ns = 7}};
}

verify::Retelling told_of(std::vector<TraceEvent> events, std::vector<int> needed) {
  verify::Retelling told;
  told.ranks = {std::move(events)};
  told.needed = {std::move(needed)};
  return told;
}

TEST(RetellingText, EveryStepIsAColumn) {
  EXPECT_THAT(lane_lines(told_of(one_hop(), {0, 1}), 10),
              ElementsAre("          step 0   step 1", "rank 0    [0]      0>1 1<1@0 =1,0 [1@0]"));
}

TEST(RetellingText, WhatIsNeverComputedOnIsSaid) {
  std::vector<TraceEvent> events = one_hop();
  events.pop_back();
  EXPECT_THAT(lane_lines(told_of(events, {0, 1}), 10).back(), HasSubstr("=1,0  <- never [1]"));
  EXPECT_THAT(lane_lines(told_of({}, {0}), 10), ElementsAre("rank 0  <- never [0]"));
}

TEST(RetellingText, WhatIsComputedOnTwiceAndWhatNeverReturnsIsMarked) {
  std::vector<TraceEvent> events = one_hop();
  events.back().owner = 0;
  EXPECT_THAT(lane_lines(told_of(events, {0}), 10).back(), HasSubstr("[0@0]!"));
  events.resize(5);
  events.back().end_ns = 0;
  verify::Retelling told = told_of(events, {0, 1});
  told.failed = "a deadlock";
  EXPECT_THAT(lane_lines(told, 10).back(), testing::EndsWith("=1,0 never !"));
}

TEST(RetellingText, ARowSaysWhereItIsWrongFirst) {
  verify::Retelling told;
  told.row = verify::WrongRow{
      .at = {.tensor = "o", .token = 1},
      .rank = 1,
      .o = {1, 2},
      .lse = {0.5, 0.5},
      .steps = {{.owner = 1, .keys = {2, 3}, .weight = {{0.5, 1}}, .o = {{1, 1}}, .lse = {{0, 0}}},
                {.owner = 0,
                 .keys = {0},
                 .weight = {{0.5, 0}},
                 .o = {{1, 2}},
                 .lse = {{0.50001, 0.50002}},
                 .wrong = true}}};
  const std::vector<std::string> lines = retelling_lines({.of = {}, .told = told});
  EXPECT_THAT(lines, Contains(testing::MatchesRegex("step 0 chunk 1 keys 2-3 .*<- more")));
  EXPECT_THAT(lines, Contains(testing::MatchesRegex(
                         "step 1 chunk 0 keys 0 .*0.50001  0.50002.*<- lost, first wrong")));
}

TEST(RetellingText, ManyRanksStayWithinAScreen) {
  verify::Retelling told;
  for (int rank = 0; rank < 64; ++rank) {
    told.ranks.push_back(one_hop());
    told.needed.push_back({0, 1});
  }
  told.seen = verify::EventFinding{.suspect = {}, .where = "there", .rank = 40, .step = 1};
  EXPECT_THAT(lane_lines(told, 10), SizeIs(10));
  EXPECT_THAT(lane_lines(told, 10), Contains("rank 40   [0]      0>1 1<1@0 =1,0 [1@0] !"));
  EXPECT_LE(retelling_lines({.of = {}, .told = told}).size(), kMostPictureLines);
}

}  // namespace
}  // namespace ringlab::report
