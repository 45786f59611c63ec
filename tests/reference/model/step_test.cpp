#include "reference/model/training/step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "reference/model/training/step_planner.h"
#include "reference/model/training/transformer_file.h"

namespace ringlab::model {
namespace {

// A transformer that is small enough to be gone through number by number.
Transformer small_model(bool gated, std::int64_t experts) {
  Transformer m;
  m.name = "small";
  m.layers = 3;
  m.hidden = 8;
  m.heads = 4;
  m.kv_heads = 2;
  m.head_dim = 3;
  m.feed_forward = 10;
  m.gated = gated;
  m.experts = experts;
  m.experts_per_token = experts > 1 ? 2 : 1;
  m.vocabulary = 11;
  return m;
}

/// Counts the operations of a vector through a matrix, one multiplication and one sum at a time.
class Counting {
 public:
  std::vector<double> through(const std::vector<double>& in, std::int64_t outputs) {
    std::vector<double> out(static_cast<std::size_t>(outputs));
    for (double& sum : out) {
      for (const double value : in) {
        sum += value * 0.5;
        operations += 2;
      }
    }
    return out;
  }
  std::int64_t operations = 0;
};

std::int64_t counted_layer(const Transformer& m) {
  Counting count;
  const std::vector<double> token(static_cast<std::size_t>(m.hidden), 1.0);
  const auto q = count.through(token, m.heads * m.head_dim);
  count.through(token, m.kv_heads * m.head_dim);
  count.through(token, m.kv_heads * m.head_dim);
  const auto hidden = count.through(q, m.hidden);  // attention's answer is as wide as q
  if (m.experts > 1) count.through(hidden, m.experts);
  for (std::int64_t expert = 0; expert < m.experts_per_token; ++expert) {
    const auto inner = count.through(hidden, m.feed_forward);
    if (m.gated) count.through(hidden, m.feed_forward);
    count.through(inner, m.hidden);
  }
  return count.operations;
}

TEST(Step, operations_are_those_that_are_counted) {
  for (const bool gated : {false, true}) {
    for (const std::int64_t experts : {1, 4}) {
      const Transformer m = small_model(gated, experts);
      EXPECT_EQ(layer_product_flops(m), counted_layer(m));
    }
  }
  const Transformer m = small_model(true, 1);
  std::int64_t pairs = 0;  // of queries and keys, one after the other
  for (int query = 0; query < 7; ++query) pairs += query + 1;
  const auto attention = static_cast<double>(4 * pairs * m.heads * m.head_dim);
  const auto products = static_cast<double>(3 * counted_layer(m) + 2 * m.hidden * m.vocabulary);
  EXPECT_EQ(step_flops({.model = m, .tokens = 7, .sequences = 2}),
            2 * 3 * (7 * products + 3 * attention));
}

TEST(Step, windows_take_pairs_away) {
  Transformer m = small_model(true, 1);
  m.window = 3;
  m.windowed_layers = 2;
  std::int64_t windowed = 0, all = 0;
  for (int query = 0; query < 7; ++query) {
    windowed += std::min(query + 1, 3);
    all += query + 1;
  }
  const auto attention = static_cast<double>(4 * (2 * windowed + all) * m.heads * m.head_dim);
  const auto products = static_cast<double>(3 * counted_layer(m) + 2 * m.hidden * m.vocabulary);
  EXPECT_DOUBLE_EQ(step_flops({.model = m, .tokens = 7}), 3 * (7 * products + attention));
}

// What each tensor of a layer takes, one after the other, as a program would allocate them.
TEST(Step, kept_bytes_are_those_of_the_tensors) {
  const Transformer m = small_model(true, 1);
  constexpr std::int64_t kTokens = 20;
  std::int64_t bytes = 0;
  const auto tensor = [&](std::int64_t channels, std::int64_t each) {
    bytes += channels * kTokens * each;
  };
  tensor(m.hidden, 2);                                    // what goes in
  tensor(m.hidden, 2);                                    // the first norm's answer
  tensor(m.heads * m.head_dim, 2);                        // q
  tensor(2 * m.kv_heads * m.head_dim, 2);                 // k, v
  tensor(m.heads * m.head_dim, 2);                        // attention's answer
  tensor(m.heads, 4);                                     // its log-sum-exp
  tensor(m.hidden, 2);                                    // what goes into the second norm
  tensor(m.hidden, 2);                                    // its answer
  for (int n = 0; n < 3; ++n) tensor(m.feed_forward, 2);  // gate, up and their product
  const Training training{.model = m, .tokens = kTokens};
  EXPECT_EQ(step_memory(training, {}, 0).kept, static_cast<double>(m.layers * bytes));
  const auto inputs = static_cast<double>(m.layers * m.hidden * kTokens * 2);
  EXPECT_EQ(step_memory(training, {.kept = Kept::inputs}, 0).kept, inputs);
}

TEST(Step, all_devices_together_hold_the_model) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  const auto all = static_cast<double>(parameter_count(m));
  const Training training{.model = m, .tokens = 65536, .sequences = 8};
  for (const Sharded sharded : {Sharded::optimizer, Sharded::weights}) {
    for (const Split& split : {Split{4, 1, 1, 2}, Split{1, 1, 1, 8}, Split{8, 1, 1, 1}}) {
      const StepMemory memory = step_memory(training, {.split = split, .sharded = sharded}, 0);
      EXPECT_DOUBLE_EQ(memory.optimizer * split.devices(), 12 * all);
      EXPECT_EQ(memory.weights == 2 * all, sharded == Sharded::optimizer);
    }
  }
}

std::int64_t holds_nothing(const Job& /*job*/, const JobNeeds& /*needs*/) { return 0; }

TEST(Step, one_device_takes_the_time_of_its_operations) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  Machine machine = find_machine("h100");
  machine.block_s = 0;
  machine.memory_bytes_per_s = std::numeric_limits<double>::infinity();
  machine.forward_flops = machine.product_flops;
  machine.backward_flops = machine.product_flops * 5 / 4;  // five products, counted as four
  const Training training{.model = m, .tokens = 8192, .sequences = 3};
  const RingCost ring = ring_cost(training, {}, machine, holds_nothing);
  EXPECT_NEAR(step_time(training, {}, ring, machine).total(),
              step_flops(training) / machine.product_flops, 1e-3 * ring.forward_s);
}

// More of what a machine has is never slower, more tokens never faster, and splits hold what they say.
RC_GTEST_PROP(StepProperties, time_follows_the_machine, ()) {
  const Training training{.model = find_transformer("llama-3.1-8b"),
                          .tokens = std::int64_t{1} << *rc::gen::inRange(12, 21),
                          .sequences = 8};
  const SplitWish wish{.devices = 1 << *rc::gen::inRange(0, 6)};
  Machine machine = find_machine("h100");
  const auto ways = ways_to_train(training, wish, machine);
  RC_ASSERT(!ways.empty());
  const StepWay way = ways[*rc::gen::inRange<std::size_t>(0, ways.size())];
  RC_ASSERT(way.split.devices() == wish.devices);
  const auto seconds = [&](const Machine& on) {
    return step_time(training, way, ring_cost(training, way, on, holds_nothing), on).total();
  };
  const double before = seconds(machine);
  RC_ASSERT(before > 0);
  const int what = *rc::gen::inRange(0, 3);
  if (what == 0) machine.product_flops *= 2;
  if (what == 1) machine.inside.bytes_per_s *= 2;
  if (what == 2) machine.outside.bytes_per_s *= 2;
  RC_ASSERT(seconds(machine) <= before * (1 + 1e-9));
}

TEST(StepPlanner, wishes_are_kept_and_the_first_fits_if_any_does) {
  const Training training{
      .model = find_transformer("llama-3.1-8b"), .tokens = 1 << 17, .sequences = 32};
  const SplitWish wish{.devices = 64, .context = 8, .kept = Kept::attention};
  const Machine& machine = find_machine("h100");
  const auto choices = weigh_training(training, wish, machine, holds_nothing);
  ASSERT_FALSE(choices.empty());
  bool fits_until_now = true;
  for (const StepChoice& choice : choices) {
    EXPECT_EQ(choice.way.split.context, 8);
    EXPECT_EQ(choice.way.kept, Kept::attention);
    EXPECT_EQ(choice.way.split.devices(), 64);
    const bool fits = choice.memory.total() <= machine.memory_bytes;
    EXPECT_LE(fits, fits_until_now);
    fits_until_now = fits;
    EXPECT_TRUE(!fits || choices.front().time.total() <= choice.time.total() * (1 + kAsFast));
  }
}

TEST(StepPlanner, the_longest_context_is_the_last_that_fits) {
  const Training training{.model = find_transformer("llama-3.1-8b"), .tokens = 8192};
  const SplitWish wish{.devices = 8, .kept = Kept::inputs, .sharded = Sharded::weights};
  const Machine& machine = find_machine("h100");
  const std::int64_t longest = longest_context(training, wish, machine, holds_nothing);
  const auto fits = [&](std::int64_t tokens) {
    Training asked = training;
    asked.tokens = tokens;
    const auto choices = weigh_training(asked, wish, machine, holds_nothing);
    return choices.front().memory.total() <= machine.memory_bytes;
  };
  EXPECT_TRUE(fits(longest));
  EXPECT_FALSE(fits(longest + longest / 8));
}

}  // namespace
}  // namespace ringlab::model
