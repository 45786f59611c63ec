#include "reference/model/serving/serve.h"

#include <algorithm>
#include <vector>

#include "reference/model/closed_forms.h"
#include "reference/model/many_ranks.h"
#include "reference/model/simulation.h"
#include "reference/model/training/amounts.h"
#include "reference/model/training/dealing.h"

namespace ringlab::model {
namespace {

constexpr double kOperations = 2;  // of a weight and a token

/// Sequences that one stage works on while the others have theirs.
std::int64_t at_once(const Serving& serving, const Split& split) {
  return (serving.sequences + split.stages - 1) / split.stages;
}

/// New tokens that a device has, in the products of its layers.
double device_tokens(const Serving& serving, const Split& split) {
  return ceil_of(at_once(serving, split) * serving.tokens, split.context);
}

/// New tokens of a rank of a ring: of all who deal heads.
double rank_tokens(const Serving& serving, const ServeWay& way) {
  return ceil_of(at_once(serving, way.split) * serving.tokens, way.ring());
}

/// Keys that a new token of a layer can see, or the window before all of them.
std::int64_t seen_keys(const Serving& serving, bool windowed) {
  return windowed ? std::min(serving.model.window + serving.tokens - 1, serving.keys())
                  : serving.keys();
}

/// The mean of all layers, those with a window and the others.
template <class Cost>
double mean_of_layers(const Transformer& m, const Cost& cost) {
  const double windowed = windowed_share(m);
  return (windowed > 0 ? windowed * cost(true) : 0) +
         (windowed < 1 ? (1 - windowed) * cost(false) : 0);
}

double kv_bytes(const Problem& problem) {
  return static_cast<double>(work_of(problem, Pass::forward).kv_bytes_per_token);
}

Job prefill_job(const Serving& serving, const ServeWay& way, bool windowed) {
  Job job{.problem = serve_problem(serving, way, windowed)};
  job.options.ranks = way.ring();
  job.options.layout = windowed ? LayoutKind::contiguous : LayoutKind::zigzag;
  return job;
}

/// Cached tokens lie evenly, and new ones in zigzag behind them: ranks have as many pairs, whoever
/// travels. Of layers with a window all are contiguous.
JobNeeds prefill_needs(const Serving& serving, const Job& job, bool windowed) {
  if (windowed) return needs_of(job.problem, job.options);
  Problem fresh = job.problem;
  fresh.shape.kv_tokens = serving.tokens;
  fresh.mask = parse_mask("causal").bind(serving.tokens, serving.tokens);
  JobNeeds needs = needs_of(fresh, job.options);
  const std::vector<std::int64_t> queries = needs.tokens;  // as many as new keys
  const Layout cached(LayoutKind::contiguous, serving.cached, job.options.ranks);
  for (int owner = 0; owner < cached.ranks(); ++owner) {
    const std::int64_t more = cached.positions(owner).size();
    needs.tokens[static_cast<std::size_t>(owner)] += more;
    for (int rank = 0; rank < cached.ranks(); ++rank) {
      const std::int64_t pairs = queries[static_cast<std::size_t>(rank)] * more;
      needs.need.set(rank, owner, needs.need.pairs(rank, owner) + pairs);
    }
  }
  return needs;
}

/// Who visits whom where queries go round: the needs with both ends exchanged.
NeedMatrix exchanged(const NeedMatrix& need) {
  NeedMatrix other(need.ranks());
  for (int rank = 0; rank < need.ranks(); ++rank) {
    for (int owner = 0; owner < need.ranks(); ++owner) {
      other.set(owner, rank, need.pairs(rank, owner));
    }
  }
  return other;
}

/// A ring of queries: each rank computes on its own keys with queries that visit it.
Simulation queries_ring(const Job& job, const JobNeeds& needs, const Machine& machine) {
  const Shape& s = job.problem.shape;
  const NeedMatrix need = exchanged(needs.need);
  const Layout queries = make_layout(job.options, s.q_tokens, job.options.q_layout);
  std::vector<std::int64_t> tokens;
  for (int rank = 0; rank < queries.ranks(); ++rank) {
    tokens.push_back(queries.positions(rank).size());
  }
  Work work = work_of(job.problem, Pass::forward);
  work.kv_bytes_per_token = s.batch * s.q_heads * s.head_dim * dtype_info(job.problem.dtype).bytes;
  work.out_numbers_per_token = 0;  // answers are merged once, by those who asked
  const Schedule schedule = build_schedule(schedule_spec(job.options), need, Pass::forward);
  return simulate({schedule, need, tokens, work, CutBlocks::own}, machine);
}

/// A ring of a prefill on other ranks, with chunks as long as before.
struct Prefill {
  Serving serving;
  ServeWay way;
};
Prefill with_ranks(const Prefill& prefill, int ranks) {
  if (ranks == prefill.way.ring()) return prefill;
  const auto longer = [&](std::int64_t tokens) {
    return static_cast<std::int64_t>(ceil_of(tokens, prefill.way.ring())) * ranks;
  };
  Prefill other = prefill;
  other.serving.tokens = longer(prefill.serving.tokens);
  other.serving.cached = longer(prefill.serving.cached);
  other.way.split.context = ranks * prefill.way.by_heads;
  return other;
}

/// Simulates one layer of a prefill on all of its ranks.
JobTimes executed(const Prefill& prefill, const Machine& machine, bool windowed) {
  const Job job = prefill_job(prefill.serving, prefill.way, windowed);
  const JobNeeds needs = prefill_needs(prefill.serving, job, windowed);
  if (prefill.way.passed == Passed::keys) return simulate_job(job, needs, machine);
  const Simulation ring = queries_ring(job, needs, machine);
  JobTimes times{.ranks = ring.ranks, .seconds = ring.seconds};
  for (const auto& rank : ring.events) {
    times.events.insert(times.events.end(), rank.begin(), rank.end());
  }
  return times;
}

/// Seconds of a prefill's ring in a layer, no less than to read keys and values of all chunks.
double ring_seconds(const Serving& serving, const ServeWay& way, const Machine& machine,
                    bool windowed) {
  const Prefill prefill{serving, way};
  const RankLine line = line_of(way.ring(), machine);
  // Ranks beyond those that a window reaches add nothing.
  const bool is_near =
      windowed && serving.model.window <= (line.most - 2) * (serving.tokens / way.ring());
  const int ranks = is_near ? std::min(way.ring(), line.most) : way.ring();
  const auto seconds_of = [&](int few) {
    return executed(with_ranks(prefill, few), machine, windowed).seconds;
  };
  const double ring = on_line(ranks, line, seconds_of);
  const double reading = static_cast<double>(seen_keys(serving, windowed)) *
                         kv_bytes(serve_problem(serving, way, windowed)) /
                         machine.memory_bytes_per_s;
  return std::max(ring, reading);
}

/// Seconds of attention in a layer of a decode: a rank reads its share of all caches once.
double reading_seconds(const Serving& serving, const ServeWay& way, const Machine& machine,
                       bool windowed) {
  const Problem problem = serve_problem(serving, way, windowed);
  const double keys = ceil_of(seen_keys(serving, windowed), way.ring());
  const double flops = static_cast<double>(work_of(problem, Pass::forward).flops_per_pair) * keys;
  return machine.block_s + std::max(keys * kv_bytes(problem) / machine.memory_bytes_per_s,
                                    flops / machine.forward_flops);
}

/// Seconds of a layer to send answers, and queries of a decode; a prefill's are in its ring.
double answer_seconds(const Serving& serving, const ServeWay& way, const Machine& machine) {
  const int ranks = way.ring();
  if (ranks == 1 || way.passed == Passed::keys) return 0;
  const Problem problem = serve_problem(serving, way, false);
  const Shape& s = problem.shape;
  const double heads = static_cast<double>(s.q_heads) * rank_tokens(serving, way);
  const double query = static_cast<double>(s.head_dim * dtype_info(problem.dtype).bytes);
  const double state = static_cast<double>((s.v_dim + 2) * accumulator_bytes(problem.dtype));
  return (serving.decodes() ? exchange_seconds(heads * query, ranks, machine) : 0) +
         exchange_seconds(heads * state, ranks, machine);
}

/// Numbers of the matrices of a layer that so many tokens go through; of experts, each at most once.
double read_weights(const Transformer& m, double tokens) {
  const Parameters p = parameters_of(m);
  const auto experts = static_cast<double>(m.experts);
  const double used = std::min(experts, tokens * static_cast<double>(m.experts_per_token));
  return static_cast<double>(p.attention + p.norms) +
         static_cast<double>(p.feed_forward) * used / experts;
}

double product_seconds(const Serving& serving, const Split& split, const Machine& machine) {
  const Transformer& m = serving.model;
  const double flops_per_s = machine.products_per_s();
  const double tokens = device_tokens(serving, split), tensor = split.tensor;
  const auto longer = [&](double flops, double weights) {
    return std::max(flops / flops_per_s, kWeightBytes * weights / machine.memory_bytes_per_s) /
           tensor;
  };
  const double layer =
      longer(static_cast<double>(layer_product_flops(m)) * tokens, read_weights(m, tokens));
  const double matrix = static_cast<double>(logit_flops(m)) / kOperations;
  // Only the last token of a sequence is asked for the next one.
  const double last = ceil_of(at_once(serving, split), split.context);
  return static_cast<double>(m.layers) * layer + longer(kOperations * matrix * last, matrix);
}

/// New tokens that those who deal heads have together, with all heads of a tensor group.
Problem dealt_problem(const Serving& serving, const ServeWay& way) {
  Problem problem = serve_problem(serving, {.split = way.split}, false);
  problem.shape.batch = 1;
  problem.shape.q_tokens = problem.shape.kv_tokens =
      static_cast<std::int64_t>(device_tokens(serving, way.split)) * way.by_heads;
  return problem;
}

/// Bytes of queries and of partial answers: those of all ranks, until they have gone home.
double queries_bytes(const Serving& serving, const ServeWay& way) {
  const Problem problem = serve_problem(serving, way, false);
  const Shape& s = problem.shape;
  const double own = rank_tokens(serving, way), all = own * way.ring();
  const double query = kActivationBytes * static_cast<double>(s.q_heads * s.head_dim);
  const double state =
      static_cast<double>(s.q_heads * (s.v_dim + 2) * accumulator_bytes(problem.dtype));
  const double visiting =
      serving.decodes() ? all : own * std::min(RunOptions{}.slots, way.ring() - 1);
  return query * (2 * own + visiting) + state * all;
}

/// Bytes of a ring of keys, asked of few ranks with as long chunks, for one of many holds no more.
double keys_bytes(const Prefill& prefill, const MemoryOf& memory_of) {
  const bool windowed = prefill.serving.model.all_windowed();
  const Prefill few = with_ranks(prefill, std::min(prefill.way.ring(), kRanksAsked));
  const Job job = prefill_job(few.serving, few.way, windowed);
  return static_cast<double>(memory_of(job, prefill_needs(few.serving, job, windowed)));
}

double attention_bytes(const Serving& serving, const ServeWay& way, const MemoryOf& memory_of) {
  const bool passes_queries = way.passed == Passed::queries || serving.decodes();
  return dealt_bytes(dealt_problem(serving, way), way.by_heads) +
         (passes_queries ? queries_bytes(serving, way) : keys_bytes({serving, way}, memory_of));
}

}  // namespace

Problem serve_problem(const Serving& serving, const ServeWay& way, bool windowed) {
  const Transformer& m = serving.model;
  const std::int64_t dealt = way.group();
  const std::int64_t keys =
      serving.tokens + (windowed ? std::min(serving.cached, m.window - 1) : serving.cached);
  Problem problem;
  problem.shape = {.batch = at_once(serving, way.split),
                   .q_heads = (m.heads + dealt - 1) / dealt,
                   .kv_heads = (m.kv_heads + dealt - 1) / dealt,
                   .q_tokens = serving.tokens,
                   .kv_tokens = keys,
                   .head_dim = m.head_dim,
                   .v_dim = m.head_dim};
  problem.dtype = DType::bf16;
  problem.scale = default_scale(m.head_dim);
  const std::string mask =
      windowed ? "causal+window:" + std::to_string(m.window - 1) + ",0" : "causal";
  problem.mask = parse_mask(mask).bind(serving.tokens, keys);
  return problem;
}

double passed_bytes(const Serving& serving, const ServeWay& way) {
  const Problem problem = serve_problem(serving, way, false);
  const std::int64_t bytes = way.passed == Passed::keys ? pass_kv_bytes(problem, way.ring())
                                                        : pass_q_bytes(problem, way.ring());
  return static_cast<double>(bytes) * way.group();
}

ServeMemory serve_memory(const Serving& serving, const ServeWay& way, const MemoryOf& memory_of) {
  const Transformer& m = serving.model;
  const Split& split = way.split;
  const DeviceWeights weights = device_weights(m, split);
  ServeMemory memory{.weights = kWeightBytes * weights.all()};
  const Problem one = serve_problem({.model = m}, way, false);
  const double keys = mean_of_layers(
      m, [&](bool windowed) { return ceil_of(seen_keys(serving, windowed), way.ring()); });
  memory.cache = weights.layers * static_cast<double>(serving.sequences) * keys * kv_bytes(one);
  const double tokens = device_tokens(serving, split), tensor = split.tensor;
  const double block = serving.block_tokens > 0
                           ? std::min(tokens, static_cast<double>(serving.block_tokens))
                           : tokens;
  const double last = ceil_of(at_once(serving, split), split.context);
  const double most = std::max({attention_bytes(serving, way, memory_of),
                                kActivationBytes * block * feed_forward_numbers(m) / tensor,
                                kLogitBytes * last * static_cast<double>(m.vocabulary) / tensor});
  // The input of the next layer, and the answer of its norm.
  memory.activations =
      2 * kActivationBytes * tokens * static_cast<double>(m.hidden) / tensor + most;
  return memory;
}

ServeTime serve_time(const Serving& serving, const ServeWay& way, const Machine& machine) {
  const Transformer& m = serving.model;
  const Split& split = way.split;
  const Machine ring = ring_machine(machine, way.group());
  const auto layers = static_cast<double>(m.layers);
  const double between =
      kActivationBytes * device_tokens(serving, split) * static_cast<double>(m.hidden);
  ServeTime time{.products = product_seconds(serving, split, machine)};
  time.attention = layers * mean_of_layers(m, [&](bool windowed) {
                     return serving.decodes() ? reading_seconds(serving, way, ring, windowed)
                                              : ring_seconds(serving, way, ring, windowed);
                   });
  time.answers = layers * answer_seconds(serving, way, ring);
  time.heads = layers * dealing_seconds(dealt_problem(serving, way), way.by_heads,
                                        ring_machine(machine, split.tensor));
  if (split.tensor > 1) {
    time.tensor =
        layers * kCollectives * exchange_seconds(between / split.tensor, split.tensor, machine);
  }
  const bool in_node = split.devices() <= machine.node_ranks;
  const LinkSpeed& link = in_node ? machine.inside : machine.outside;
  time.stages = (split.stages - 1) * (link.latency_s + between / split.tensor / link.bytes_per_s);
  return time;
}

JobTimes prefill_times(const Serving& serving, const ServeWay& way, const Machine& machine,
                       int ranks) {
  return executed(with_ranks({serving, way}, std::min(ranks, way.ring())),
                  ring_machine(machine, way.group()), serving.model.all_windowed());
}

double tokens_per_second(const Serving& serving, double seconds) {
  return static_cast<double>(serving.sequences) * static_cast<double>(serving.tokens) / seconds;
}

}  // namespace ringlab::model
