#include "reference/model/serving/serve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "reference/core/schedule/schedule_costs.h"
#include "reference/model/closed_forms.h"
#include "reference/model/many_ranks.h"
#include "reference/model/network.h"
#include "reference/model/serving/serve_planner.h"
#include "reference/model/training/transformer_file.h"
#include "stages/common/costs.h"

namespace ringlab::model {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

std::int64_t no_bytes(const Job& /*job*/, const JobNeeds& /*needs*/) { return 0; }

Problem behind_a_cache(std::int64_t tokens, std::int64_t cached) {
  Problem problem;
  problem.shape = {.batch = 1,
                   .q_heads = 6,
                   .kv_heads = 2,
                   .q_tokens = tokens,
                   .kv_tokens = cached + tokens,
                   .head_dim = 5,
                   .v_dim = 4};
  problem.dtype = DType::bf16;
  problem.mask = parse_mask("causal").bind(tokens, cached + tokens);
  return problem;
}

/// Every row that a rank sends, one after the other.
struct CountedBytes {
  std::int64_t keys = 0, queries = 0;
};
CountedBytes counted(const Problem& problem, int ranks) {
  const Shape& s = problem.shape;
  const Layout queries(LayoutKind::zigzag, s.q_tokens, ranks);
  const Layout keys(LayoutKind::zigzag, s.kv_tokens, ranks);
  CountedBytes bytes;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int other = 0; other < ranks; ++other) {
      if (rank == other) continue;
      for (std::int64_t row = 0; row < keys.positions(rank).size(); ++row) {
        bytes.keys += s.kv_heads * (s.head_dim + s.v_dim) * 2;  // K and V in bf16
      }
      for (std::int64_t row = 0; row < queries.positions(rank).size(); ++row) {
        bytes.queries += s.q_heads * s.head_dim * 2;  // there, in bf16
        bytes.queries +=
            s.q_heads * (s.v_dim + 2) * 4;  // and back: acc, row_max and row_sum in f32
      }
    }
  }
  return bytes;
}

TEST(ClosedForms, bytes_of_keys_and_of_queries_are_those_that_are_counted) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t tokens : {1, 7, 64}) {
      const Problem problem = behind_a_cache(tokens, 100);
      const CountedBytes bytes = counted(problem, ranks);
      EXPECT_EQ(pass_kv_bytes(problem, ranks), bytes.keys);
      EXPECT_EQ(pass_q_bytes(problem, ranks), bytes.queries);
    }
  }
}

TEST(ClosedForms, bytes_are_those_that_stages_state) {
  for (const int ranks : {1, 3, 4}) {
    const Problem problem = behind_a_cache(21, 100);
    RunOptions options;
    options.ranks = ranks;
    std::int64_t keys = 0, queries = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      keys += stages::ring_costs(problem, options, rank).sent_bytes;
      queries += stages::decode_costs(problem, options, rank).sent_bytes;
    }
    EXPECT_EQ(pass_kv_bytes(problem, ranks), keys);
    EXPECT_EQ(pass_q_bytes(problem, ranks), queries);
  }
}

TEST(ClosedForms, a_ring_of_keys_sends_them) {
  const Problem problem = behind_a_cache(30, 70);
  RunOptions options;
  options.ranks = 4;
  options.layout = LayoutKind::zigzag;
  const JobNeeds needs = needs_of(problem, options);
  const Schedule schedule = build_schedule(schedule_spec(options), needs.need, Pass::forward);
  std::int64_t tokens = 0;
  for (const RankCosts& rank : count_schedule(schedule, needs.tokens).ranks) {
    tokens += rank.kv_sent.tokens;
  }
  EXPECT_EQ(pass_kv_bytes(problem, 4), tokens * work_of(problem, Pass::forward).kv_bytes_per_token);
}

TEST(ClosedForms, queries_are_fewer_bytes_below_the_criterion) {
  constexpr std::int64_t kCached = 1000;
  const double below = pass_q_below(behind_a_cache(1, kCached), kCached);
  for (std::int64_t tokens = 1; tokens < 2 * static_cast<std::int64_t>(below); ++tokens) {
    const CountedBytes bytes = counted(behind_a_cache(tokens, kCached), 3);
    EXPECT_EQ(bytes.queries < bytes.keys, static_cast<double>(tokens) < below) << tokens;
  }
}

TEST(ClosedForms, exchanges_take_as_long_as_on_the_network) {
  Machine machine = find_machine("h100");
  machine.node_ranks = 4;
  constexpr std::int64_t kBytes = 1 << 20;
  for (const Wiring wiring : {Wiring::switched, Wiring::direct, Wiring::shared}) {
    machine.wiring = wiring;
    for (const int ranks : {1, 2, 4, 7, 8, 12}) {
      NetworkModel network(machine);
      int messages = 0;
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          if (from != to) network.start(messages++, from, to, kBytes, 0);
        }
      }
      double end = 0;
      for (double now = 0; now != NetworkModel::kNever; now = network.next_end()) {
        end = now;
        network.take_ended(now);
        network.share(now);
      }
      const double latency = ranks == 1   ? 0
                             : ranks <= 4 ? machine.inside.latency_s
                                          : machine.outside.latency_s;
      EXPECT_NEAR(exchange_seconds(kBytes, ranks, machine), end + latency, 1e-9 + 0.001 * end)
          << wiring_name(wiring) << " " << ranks;
    }
  }
}

/// Nothing takes time but bytes that leave a rank.
Machine links_alone() {
  Machine machine = find_machine("h100");
  machine.block_s = machine.inside.latency_s = 0;
  machine.forward_flops = machine.product_flops = 1e30;
  machine.memory_bytes_per_s = kEndless;
  return machine;
}

/// Ways of at most a node: rings of 2 and 4 ranks, each of 1 to 4 devices.
std::vector<ServeWay> ways_in_a_node() {
  std::vector<ServeWay> ways;
  for (const int ranks : {2, 4}) {
    for (const int tensor : {1, 2}) {
      for (const int by_heads : {1, 2, 4}) {
        if (ranks * tensor * by_heads > 8) continue;
        for (const Passed passed : {Passed::keys, Passed::queries}) {
          ways.push_back({{.context = ranks * by_heads, .tensor = tensor}, passed, by_heads});
        }
      }
    }
  }
  return ways;
}

/// All devices send as much as they can for so many seconds of all layers: the bytes of one layer.
double sent_in(double seconds, const Transformer& m, const Machine& machine, const ServeWay& way) {
  return seconds / static_cast<double>(m.layers) * machine.inside.bytes_per_s * way.split.devices();
}

TEST(Serve, what_rings_and_exchanges_take_is_what_closed_forms_say_of_their_bytes) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  const Machine machine = links_alone();
  const Serving prefill{.model = m, .tokens = 4096, .cached = 8192};
  const Serving decode{.model = m, .cached = 8191, .sequences = 16};
  for (const ServeWay& way : ways_in_a_node()) {
    for (const Serving& serving : {prefill, decode}) {
      if (serving.decodes() && way.passed == Passed::keys) continue;
      const ServeTime time = serve_time(serving, way, machine);
      const double sent = sent_in(time.attention + time.answers, m, machine, way);
      EXPECT_NEAR(sent / passed_bytes(serving, way), 1, 1e-6);
    }
  }
}

// q, k and v of new tokens go to those who have their heads, and out and lse come back; cached ones stay.
TEST(Serve, heads_that_are_dealt_take_what_they_send) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  const Machine machine = links_alone();
  for (const std::int64_t cached : {0, 8192}) {
    const Serving serving{.model = m, .tokens = 4096, .cached = cached};
    for (const ServeWay& way : ways_in_a_node()) {
      const ServeTime time = serve_time(serving, way, machine);
      double sent = 0;
      const double to_others = 1.0 - 1.0 / way.by_heads;  // of what each device has
      for (std::int64_t token = 0; token < serving.tokens; ++token) {
        const auto heads = static_cast<double>(m.heads);
        const auto kv_heads = static_cast<double>(m.kv_heads);
        const auto channels = static_cast<double>(m.head_dim);
        sent += to_others * (2 * heads * channels + 2 * kv_heads * channels) * 2;  // bf16
        sent += to_others * heads * 4;                                             // lse
      }
      EXPECT_NEAR(sent_in(time.heads, m, machine, way), sent, 1e-6 * sent + 1e-9);
    }
  }
}

TEST(Serve, rings_of_many_ranks_go_on_as_rings_of_some) {
  Machine few = find_machine("h100"), all = few;
  few.inside = all.inside = few.outside;  // so that nodes change nothing but how many are executed
  all.node_ranks = 64;
  for (const char* name : {"llama-3.1-8b", "mistral-7b"}) {
    const Serving serving{.model = find_transformer(name), .tokens = 1 << 19, .cached = 1 << 20};
    for (const Passed passed : {Passed::keys, Passed::queries}) {
      for (const int by_heads : {1, 2}) {
        const ServeWay way{{.context = 256}, passed, by_heads};
        ASSERT_LT(line_of(way.ring(), ring_machine(few, by_heads)).most, way.ring());
        ASSERT_GE(line_of(way.ring(), ring_machine(all, by_heads)).most, way.ring());
        EXPECT_NEAR(
            serve_time(serving, way, few).attention / serve_time(serving, way, all).attention, 1,
            0.02)
            << name << " " << by_heads;
      }
    }
  }
}

TEST(Serve, memory_is_asked_of_few_ranks_with_chunks_as_long) {
  const Serving serving{.model = find_transformer("llama-3.1-8b"), .tokens = 4096, .cached = 65536};
  std::vector<std::int64_t> ranks, chunk;
  const auto note = [&](const Job& job, const JobNeeds& needs) {
    ranks.push_back(job.options.ranks);
    chunk.push_back(needs.tokens.front());
    return std::int64_t{0};
  };
  for (const int context : {4, 512}) serve_memory(serving, {{.context = context}}, note);
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(chunk, (std::vector<std::int64_t>{(4096 + 65536) / 4, (4096 + 65536) / 512}));
}

TEST(Serve, where_links_are_free_it_is_the_same_who_travels) {
  Machine machine = find_machine("h100");
  scale_links(machine, 1e9);
  machine.inside.latency_s = machine.outside.latency_s = 0;
  const Serving serving{
      .model = find_transformer("llama-3.1-8b"), .tokens = 16384, .cached = 65536};
  const Split split{.context = 8};
  EXPECT_NEAR(serve_time(serving, {split, Passed::keys}, machine).total() /
                  serve_time(serving, {split, Passed::queries}, machine).total(),
              1, 0.001);
}

TEST(Serve, one_device_takes_the_time_of_its_operations) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  Machine machine = find_machine("h100");
  machine.block_s = 0;
  machine.forward_flops = machine.product_flops;
  const Serving serving{.model = m, .tokens = 3000, .cached = 5000};
  std::int64_t pairs = 0;  // of new tokens and what comes before them
  for (std::int64_t token = 0; token < serving.tokens; ++token) {
    pairs += serving.cached + token + 1;
  }
  const auto attention = static_cast<double>(m.layers * 4 * m.heads * m.head_dim * pairs);
  const auto products =
      static_cast<double>(m.layers * layer_product_flops(m) * serving.tokens + logit_flops(m));
  // The logits of one token are bound by reading their matrix.
  const double logits =
      static_cast<double>(2 * m.vocabulary * m.hidden) / machine.memory_bytes_per_s;
  const double expected = (attention + products) / machine.product_flops + logits;
  EXPECT_NEAR(serve_time(serving, {}, machine).total() / expected, 1, 1e-4);
}

// A token reads every weight but the embedding's, and every key and value, once.
TEST(Serve, a_token_takes_the_time_of_what_it_reads) {
  for (const char* name : {"llama-3.1-8b", "gpt2", "qwen3-8b"}) {
    const Transformer& m = find_transformer(name);
    Machine machine = find_machine("h100");
    machine.block_s = 0;
    const Serving serving{.model = m, .cached = 9999, .sequences = 3};
    const Parameters p = parameters_of(m);
    double read = 0;
    for (std::int64_t layer = 0; layer < m.layers; ++layer) {
      read += 2.0 * static_cast<double>(p.layer());
      for (std::int64_t sequence = 0; sequence < serving.sequences; ++sequence) {
        for (int tensor = 0; tensor < 2; ++tensor) {
          read += 2.0 * static_cast<double>(m.kv_heads * m.head_dim * (serving.cached + 1));
        }
      }
    }
    read += 2.0 * static_cast<double>(m.vocabulary * m.hidden);
    EXPECT_NEAR(serve_time(serving, {}, machine).total() * machine.memory_bytes_per_s / read, 1,
                1e-6)
        << name;
  }
}

TEST(Serve, experts_are_read_by_those_who_need_them) {
  const Transformer& m = find_transformer("mixtral-8x7b");
  const Machine& machine = find_machine("h100");
  const auto products = [&](std::int64_t sequences) {
    return serve_time({.model = m, .cached = 999, .sequences = sequences}, {}, machine).products;
  };
  EXPECT_GT(products(2), 1.8 * products(1));  // two of eight experts each
  EXPECT_NEAR(products(4) / products(8), 1, 1e-9);
}

TEST(Serve, all_devices_together_hold_the_model_and_its_cache_once) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  const Serving serving{.model = m, .cached = 1023, .sequences = 4};
  std::int64_t cache = 0;  // keys and values in bf16
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    for (std::int64_t sequence = 0; sequence < 4; ++sequence) {
      for (std::int64_t token = 0; token < 1024; ++token) {
        cache += 2 * m.kv_heads * m.head_dim * 2;
      }
    }
  }
  for (const Split& split : {Split{}, Split{.context = 4}, Split{.tensor = 4}, Split{.stages = 4},
                             Split{.context = 2, .tensor = 2, .stages = 2}}) {
    for (int by_heads = 1; by_heads <= split.context; by_heads *= 2) {
      const ServeWay way{split, Passed::queries, by_heads};
      const ServeMemory memory = serve_memory(serving, way, no_bytes);
      EXPECT_EQ(memory.cache * split.devices(), static_cast<double>(cache));
      if (split.context * split.tensor * split.stages == split.context) {
        EXPECT_EQ(memory.weights, 2.0 * static_cast<double>(parameter_count(m)));
      }
    }
  }
  // Eight K/V heads that sixteen deal lie twice.
  const ServeWay sixteen{{.context = 16}, Passed::queries, 16};
  EXPECT_EQ(serve_memory(serving, sixteen, no_bytes).cache * 16, 2 * static_cast<double>(cache));
}

TEST(Serve, a_window_keeps_what_it_sees) {
  const Transformer& m = find_transformer("mistral-7b");
  const Serving serving{.model = m, .cached = 1 << 20};
  const ServeMemory memory = serve_memory(serving, {}, no_bytes);
  EXPECT_EQ(memory.cache, static_cast<double>(m.layers * m.window * m.kv_heads * m.head_dim * 4));
}

TEST(ServePlanner, few_new_tokens_pass_queries_and_many_pass_keys) {
  Machine machine = find_machine("h100");
  scale_links(machine, 0.1);
  const ServeWish wish{.split = {.devices = 8, .context = 8, .by_heads = 1}};
  Serving serving{.model = find_transformer("llama-3.1-8b"), .tokens = 512, .cached = 1 << 20};
  const auto first = [&] {
    return weigh_serving(serving, wish, machine, no_bytes).front().way.passed;
  };
  EXPECT_EQ(first(), Passed::queries);
  serving = {.model = serving.model, .tokens = 1 << 17};
  EXPECT_EQ(first(), Passed::keys);
}

TEST(ServePlanner, the_longest_context_is_the_last_that_fits) {
  const Machine& machine = find_machine("h100");
  const ServeWish wish{.split = {.devices = 8}};
  for (const bool decodes : {false, true}) {
    Serving serving{.model = find_transformer("llama-3.1-8b"), .tokens = decodes ? 1 : 8192};
    const std::int64_t longest = longest_served(serving, wish, machine, no_bytes);
    const auto fits = [&](std::int64_t keys) {
      (decodes ? serving.cached : serving.tokens) = decodes ? keys - 1 : keys;
      return std::ranges::any_of(ways_to_serve(serving, wish, machine), [&](const ServeWay& way) {
        return serve_memory(serving, way, no_bytes).total() <= machine.memory_bytes;
      });
    };
    EXPECT_TRUE(fits(longest));
    EXPECT_FALSE(fits(longest + longest / 8));
  }
}

// More of what a machine has is never slower.
RC_GTEST_PROP(ServeProperties, time_follows_the_machine, ()) {
  const bool decodes = *rc::gen::arbitrary<bool>();
  const Serving serving{.model = find_transformer("llama-3.1-8b"),
                        .tokens = decodes ? 1 : std::int64_t{1} << *rc::gen::inRange(8, 16),
                        .cached = std::int64_t{1} << *rc::gen::inRange(10, 20),
                        .sequences = decodes ? *rc::gen::inRange(1, 9) : 1};
  Machine machine = find_machine("h100");
  const ServeWish wish{.split = {.devices = 1 << *rc::gen::inRange(0, 5)}};
  const auto ways = ways_to_serve(serving, wish, machine);
  const ServeWay way = ways[*rc::gen::inRange<std::size_t>(0, ways.size())];
  RC_ASSERT(way.split.devices() == wish.split.devices);
  const double before = serve_time(serving, way, machine).total();
  const int what = *rc::gen::inRange(0, 4);
  if (what == 0) machine.product_flops *= 2;
  if (what == 1) machine.inside.bytes_per_s *= 2;
  if (what == 2) machine.outside.bytes_per_s *= 2;
  if (what == 3) machine.memory_bytes_per_s *= 2;
  RC_ASSERT(serve_time(serving, way, machine).total() <= before * (1 + 1e-9));
}

}  // namespace
}  // namespace ringlab::model
