// What ranks agree on, and what they say where they do not.
#include "optimized/ring/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "optimized/transport/run_network.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

std::string words_of(const Problem& problem, const RunOptions& options, Pass last_pass) {
  std::string words;
  for (const Fact& fact : facts_of(problem, options, last_pass)) {
    words += fact.name + "=" + fact.value + "\n";
  }
  return words;
}

/// What each rank says when it has these facts; nothing where they agree.
std::vector<std::string> said(const std::vector<Facts>& facts) {
  std::vector<std::string> said(facts.size());
  run_network({.ranks = static_cast<int>(facts.size())}, [&](Communicator& network) {
    const auto rank = static_cast<std::size_t>(network.rank());
    try {
      agree(facts[rank], network);
    } catch (const RankError& error) {
      said[rank] = error.what();
    }
  });
  return said;
}

void expect_all_say(const std::vector<Facts>& facts, const std::vector<std::string>& parts) {
  for (const std::string& one : said(facts)) {
    for (const std::string& part : parts) {
      EXPECT_NE(one.find(part), std::string::npos) << part << " in: " << one;
    }
  }
}

TEST(Agreement, of_ranks_that_say_the_same_is_silent) {
  for (const int ranks : {1, 2, 3, 7, 8}) {
    const std::vector<Facts> facts(static_cast<std::size_t>(ranks), {{"mask", "full"}});
    for (const std::string& one : said(facts)) EXPECT_EQ(one, "") << ranks;
  }
}

TEST(Agreement, names_all_that_differs_with_its_values_and_ranks) {
  const Facts usual = {{"seed", "1"}, {"mask", "full"}, {"dtype", "f32"}};
  const Facts odd = {{"seed", "2"}, {"mask", "full"}, {"dtype", "bf16"}, {"--check", "given"}};
  expect_all_say({usual, odd}, {"seed is 1 on rank 0 and 2 on rank 1",
                                "dtype is f32 on rank 0 and bf16 on rank 1",
                                "--check is not given on rank 0 and given on rank 1"});
  expect_all_say({usual, usual, odd, usual},
                 {"seed is 1 on ranks 0, 1, 3 and 2 on rank 2", "Suspect: rank 2"});
  for (const std::string& one : said({usual, odd})) {
    EXPECT_EQ(one.find("mask"), std::string::npos) << one;
    EXPECT_EQ(one.find("Suspect"), std::string::npos) << one;
  }
}

TEST(Agreement, blames_nobody_where_two_ranks_differ_from_the_others_in_different_things) {
  const Facts usual = {{"seed", "1"}, {"mask", "full"}};
  const std::vector<Facts> facts = {
      {{"seed", "1"}, {"mask", "causal"}}, {{"seed", "5"}, {"mask", "full"}}, usual, usual};
  expect_all_say(facts, {"seed is 1 on ranks 0, 2, 3 and 5 on rank 1",
                         "mask is causal on rank 0 and full on ranks 1, 2, 3"});
  for (const std::string& one : said(facts)) {
    EXPECT_EQ(one.find("Suspect"), std::string::npos) << one;
  }
}

TEST(Agreement, shows_that_long_values_differ_behind_their_start) {
  const std::string start(200, 'x');
  const std::vector<std::string> all = said({{{"mask", start + "1"}}, {{"mask", start + "2"}}});
  for (const std::string& one : all) EXPECT_LT(one.size(), 400u) << one;
  const std::size_t first = all[0].find("… ("), second = all[0].rfind("… (");
  EXPECT_NE(all[0].substr(first, 20), all[0].substr(second, 20)) << all[0];
}

TEST(Agreement, covers_every_option_of_a_run_that_can_change_its_result_or_its_messages) {
  const Problem problem{.shape = {.q_tokens = 5, .kv_tokens = 5}, .mask = Mask().bind(5, 5)};
  const std::string usual = words_of(problem, {}, Pass::forward);
  const RunOptions others[] = {{.ranks = 2},
                               {.layout = LayoutKind::zigzag},
                               {.direction = RingDirection::previous},
                               {.schedule = ScheduleKind::bidirectional},
                               {.slots = 3},
                               {.wire = WireFormat::bf16},
                               {.integrity = Integrity::full},
                               {.device = DeviceKind::cuda},
                               {.free_multiprocessors = 1},
                               {.tile_queries = 8},
                               {.tile_keys = 8}};
  for (const RunOptions& other : others) EXPECT_NE(words_of(problem, other, Pass::forward), usual);
  EXPECT_NE(words_of(problem, {}, Pass::backward), usual);
  const RunOptions free{.timeout_s = 1, .threads = 3};
  EXPECT_EQ(words_of(problem, free, Pass::forward), usual);
}

TEST(Agreement, tells_modifiers_apart_down_to_the_last_bit) {
  Problem problem{.shape = {.q_heads = 2, .kv_heads = 1, .q_tokens = 5, .kv_tokens = 5},
                  .mask = Mask().bind(5, 5)};
  const Modifiers all[] = {{},
                           {.softcap = 30},
                           {.softcap = std::nextafter(30.0, 31.0)},
                           {.alibi_slopes = {0.5, 0.25}},
                           {.alibi_slopes = {0.25, 0.5}},
                           {.sinks = {0.5, 0.25}},
                           {.sinks = {0, 0}},
                           {.dropout = 0.1},
                           {.dropout = 0.1, .dropout_seed = 1}};
  std::set<std::string> texts;
  for (const Modifiers& modifiers : all) {
    problem.modifiers = modifiers;
    texts.insert(words_of(problem, {}, Pass::forward));
  }
  EXPECT_EQ(texts.size(), std::size(all));
}

// What one rank's graph sends, NCCL wants another one's graph to receive.
TEST(Agreement, tells_a_graph_from_streams) {
  const Problem problem{.shape = {.q_tokens = 5, .kv_tokens = 5}, .mask = Mask().bind(5, 5)};
  EXPECT_NE(words_of(problem, {.as_graph = true}, Pass::forward),
            words_of(problem, {}, Pass::forward));
}

TEST(Agreement, tells_gradients_of_the_same_bits_from_others) {
  const Problem problem{.shape = {.q_tokens = 5, .kv_tokens = 5}, .mask = Mask().bind(5, 5)};
  EXPECT_NE(words_of(problem, {.deterministic = false}, Pass::backward),
            words_of(problem, {}, Pass::backward));
}

}  // namespace
}  // namespace ringlab::ring
