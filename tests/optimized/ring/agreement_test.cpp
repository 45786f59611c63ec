// What ranks agree on: any difference in the modifiers of the scores is a difference in words.
#include "optimized/ring/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace ringlab::ring {
namespace {

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
    texts.insert(agreement_text(problem, {}, Pass::forward));
  }
  EXPECT_EQ(texts.size(), std::size(all));
}

// What one rank's graph sends, NCCL wants another one's graph to receive.
TEST(Agreement, tells_a_graph_from_streams) {
  const Problem problem{.shape = {.q_tokens = 5, .kv_tokens = 5}, .mask = Mask().bind(5, 5)};
  EXPECT_NE(agreement_text(problem, {.as_graph = true}, Pass::forward),
            agreement_text(problem, {}, Pass::forward));
}

TEST(Agreement, tells_gradients_of_the_same_bits_from_others) {
  const Problem problem{.shape = {.q_tokens = 5, .kv_tokens = 5}, .mask = Mask().bind(5, 5)};
  EXPECT_NE(agreement_text(problem, {.deterministic = false}, Pass::backward),
            agreement_text(problem, {}, Pass::backward));
}

}  // namespace
}  // namespace ringlab::ring
