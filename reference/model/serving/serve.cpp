#include "reference/model/serving/serve.h"

#include <algorithm>
#include <vector>

#include "reference/model/closed_forms.h"
#include "reference/model/simulation.h"
#include "reference/model/training/amounts.h"

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

Job prefill_job(const Serving& serving, const Split& split, bool windowed) {
  Job job{.problem = serve_problem(serving, split, windowed)};
  job.options.ranks = split.context;
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
double queries_seconds(const Job& job, const JobNeeds& needs, const Machine& machine) {
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
  return simulate({schedule, need, tokens, work, CutBlocks::own}, machine).seconds;
}

/// Of a layer, for a prefill: the ring, and no less than reading keys and values of all chunks.
double ring_seconds(const Serving& serving, const ServeWay& way, const Machine& machine,
                    bool windowed) {
  const Job job = prefill_job(serving, way.split, windowed);
  const JobNeeds needs = prefill_needs(serving, job, windowed);
  const double reading = static_cast<double>(seen_keys(serving, windowed)) * kv_bytes(job.problem) /
                         machine.memory_bytes_per_s;
  const double ring = way.passed == Passed::keys ? simulate_job(job, needs, machine).seconds
                                                 : queries_seconds(job, needs, machine);
  return std::max(ring, reading);
}

/// Of a layer, for a decode: the own share of all caches is read once.
double reading_seconds(const Serving& serving, const Split& split, const Machine& machine,
                       bool windowed) {
  const Problem problem = serve_problem(serving, split, windowed);
  const double keys = ceil_of(seen_keys(serving, windowed), split.context);
  const double flops = static_cast<double>(work_of(problem, Pass::forward).flops_per_pair) * keys;
  return machine.block_s + std::max(keys * kv_bytes(problem) / machine.memory_bytes_per_s,
                                    flops / machine.forward_flops);
}

/// Of a layer: what asks, which a ring of a prefill has hidden or waited for, and answers.
double answer_seconds(const Serving& serving, const ServeWay& way, const Machine& machine) {
  const int ranks = way.split.context;
  if (ranks == 1 || way.passed == Passed::keys) return 0;
  const Problem problem = serve_problem(serving, way.split, false);
  const Shape& s = problem.shape;
  const double heads = static_cast<double>(s.q_heads) * device_tokens(serving, way.split);
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

/// Queries and what they are answered with: those of all ranks, until they have gone home.
double queries_bytes(const Serving& serving, const Split& split) {
  const Problem problem = serve_problem(serving, split, false);
  const Shape& s = problem.shape;
  const double own = device_tokens(serving, split), all = own * split.context;
  const double query = kActivationBytes * static_cast<double>(s.q_heads * s.head_dim);
  const double state =
      static_cast<double>(s.q_heads * (s.v_dim + 2) * accumulator_bytes(problem.dtype));
  const double visiting =
      serving.decodes() ? all : own * std::min(RunOptions{}.slots, split.context - 1);
  return query * (2 * own + visiting) + state * all;
}

double attention_bytes(const Serving& serving, const ServeWay& way, const MemoryOf& memory_of) {
  if (way.passed == Passed::queries || serving.decodes()) return queries_bytes(serving, way.split);
  const Transformer& m = serving.model;
  const bool windowed = m.windowed_layers == m.layers;
  const Job job = prefill_job(serving, way.split, windowed);
  return static_cast<double>(memory_of(job, prefill_needs(serving, job, windowed)));
}

}  // namespace

Problem serve_problem(const Serving& serving, const Split& split, bool windowed) {
  const Transformer& m = serving.model;
  const std::int64_t tensor = split.tensor;
  Problem problem;
  problem.shape = {.batch = at_once(serving, split),
                   .q_heads = (m.heads + tensor - 1) / tensor,
                   .kv_heads = (m.kv_heads + tensor - 1) / tensor,
                   .q_tokens = serving.tokens,
                   .kv_tokens = serving.keys(),
                   .head_dim = m.head_dim,
                   .v_dim = m.head_dim};
  problem.dtype = DType::bf16;
  problem.scale = default_scale(m.head_dim);
  const std::string mask =
      windowed ? "causal+window:" + std::to_string(m.window - 1) + ",0" : "causal";
  problem.mask = parse_mask(mask).bind(serving.tokens, serving.keys());
  return problem;
}

double passed_bytes(const Serving& serving, const ServeWay& way) {
  const Problem problem = serve_problem(serving, way.split, false);
  const std::int64_t bytes = way.passed == Passed::keys ? pass_kv_bytes(problem, way.split.context)
                                                        : pass_q_bytes(problem, way.split.context);
  return static_cast<double>(bytes) * way.split.tensor;
}

ServeMemory serve_memory(const Serving& serving, const ServeWay& way, const MemoryOf& memory_of) {
  const Transformer& m = serving.model;
  const Split& split = way.split;
  const DeviceWeights weights = device_weights(m, split);
  ServeMemory memory{.weights = kWeightBytes * weights.all()};
  const Problem one = serve_problem({.model = m}, split, false);
  const double keys = mean_of_layers(
      m, [&](bool windowed) { return ceil_of(seen_keys(serving, windowed), split.context); });
  memory.cache = weights.layers * static_cast<double>(serving.sequences) * keys * kv_bytes(one);
  const double tokens = device_tokens(serving, split), tensor = split.tensor;
  const double block = serving.block_tokens > 0
                           ? std::min(tokens, static_cast<double>(serving.block_tokens))
                           : tokens;
  const double last = ceil_of(at_once(serving, split), split.context);
  const double most = std::max({attention_bytes(serving, way, memory_of),
                                kActivationBytes * block * feed_forward_numbers(m) / tensor,
                                kLogitBytes * last * static_cast<double>(m.vocabulary) / tensor});
  // What goes on to the next layer, and its norm's answer.
  memory.activations =
      2 * kActivationBytes * tokens * static_cast<double>(m.hidden) / tensor + most;
  return memory;
}

ServeTime serve_time(const Serving& serving, const ServeWay& way, const Machine& machine) {
  const Transformer& m = serving.model;
  const Split& split = way.split;
  const Machine ring = ring_machine(machine, split.tensor);
  const auto layers = static_cast<double>(m.layers);
  const double between =
      kActivationBytes * device_tokens(serving, split) * static_cast<double>(m.hidden);
  ServeTime time{.products = product_seconds(serving, split, machine)};
  time.attention = layers * mean_of_layers(m, [&](bool windowed) {
                     return serving.decodes() ? reading_seconds(serving, split, ring, windowed)
                                              : ring_seconds(serving, way, ring, windowed);
                   });
  time.answers = layers * answer_seconds(serving, way, ring);
  if (split.tensor > 1) {
    time.tensor =
        layers * kCollectives * exchange_seconds(between / split.tensor, split.tensor, machine);
  }
  const bool in_node = split.devices() <= machine.node_ranks;
  const LinkSpeed& link = in_node ? machine.inside : machine.outside;
  time.stages = (split.stages - 1) * (link.latency_s + between / split.tensor / link.bytes_per_s);
  return time;
}

double tokens_per_second(const Serving& serving, double seconds) {
  return static_cast<double>(serving.sequences) * static_cast<double>(serving.tokens) / seconds;
}

}  // namespace ringlab::model
