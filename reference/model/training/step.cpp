#include "reference/model/training/step.h"

#include <algorithm>
#include <string>

#include "reference/model/many_ranks.h"
#include "reference/model/training/amounts.h"
#include "reference/model/training/dealing.h"

namespace ringlab::model {
namespace {

constexpr double kGradientBytes = 4, kOptimizerBytes = 12, kLseBytes = 4;
/// Bytes of an update per weight: both moments, gradient and weight are read (16), both moments and
/// both forms of the weight are written (14).
constexpr double kUpdateBytes = 30;

/// A step on one device, in numbers that all parts need.
struct Device {
  Device(const Training& training, const Split& split)
      : tokens(ceil_of(training.tokens, split.context)),
        rounds(ceil_of(training.sequences, split.replicas)),
        owners(static_cast<double>(split.context) * split.replicas),
        tensor(split.tensor) {
    const DeviceWeights learned = device_weights(training.model, split);
    layers = learned.layers;
    layer_weights = learned.layer;
    weights = learned.all();
  }

  double tokens;  ///< of a sequence
  double rounds;  ///< sequences, one after the other
  double owners;  ///< devices that have the same weights
  double tensor;
  double layers = 0;  ///< of the fullest stage
  double layer_weights = 0, weights = 0;
};

/// Bytes of a token and layer that are kept, of one tensor group's device.
double kept_bytes(const Transformer& m, Kept kept, double tensor) {
  const auto hidden = static_cast<double>(m.hidden);
  const auto heads = static_cast<double>(m.heads), head_dim = static_cast<double>(m.head_dim);
  const double out = heads * head_dim, lse = kLseBytes * heads;
  const double qkv = (heads + 2 * static_cast<double>(m.kv_heads)) * head_dim;
  switch (kept) {
    case Kept::inputs:
      return kActivationBytes * hidden / tensor;
    case Kept::attention:
      return (kActivationBytes * (hidden + out) + lse) / tensor;
    case Kept::everything:
      break;
  }
  // Both inputs, both norms' answers, q, k and v, attention's answer, and the feed-forward network.
  return (kActivationBytes * (4 * hidden + qkv + out + feed_forward_numbers(m)) + lse) / tensor;
}

/// Seconds of a gather or a scatter of so many bytes in all, over `ranks`.
double collective_seconds(double bytes, double ranks, const LinkSpeed& link) {
  if (ranks == 1) return 0;
  return (ranks - 1) * link.latency_s + bytes * (ranks - 1) / ranks / link.bytes_per_s;
}

/// Seconds that gathers and sums of weights take beyond the computing that hides them.
double weight_seconds(const Device& device, const StepWay& way, const Machine& machine,
                      double forward, double backward) {
  const bool in_node = device.owners * device.tensor <= machine.node_ranks;
  const LinkSpeed& link = in_node ? machine.inside : machine.outside;
  const double gather = collective_seconds(device.weights * kWeightBytes, device.owners, link);
  const double sum = collective_seconds(device.weights * kGradientBytes, device.owners, link);
  const auto shown = [](double exchange, double hidden) {
    return std::max(0.0, exchange - hidden);
  };
  if (way.sharded == Sharded::optimizer) {
    return shown(gather, forward) + shown(sum, backward);  // once a step, beside one sequence
  }
  return device.rounds * (shown(gather, forward) + shown(gather + sum, backward));
}

/// Attention of all tokens of devices that deal heads together, with all heads of a tensor group.
Problem dealt_problem(const Training& training, const StepWay& way) {
  StepWay undealt = way;
  undealt.by_heads = 1;
  Problem problem = attention_job(training, undealt, {}, false).problem;
  const std::int64_t tokens = (training.tokens + way.split.context - 1) / way.split.context;
  problem.shape.q_tokens = problem.shape.kv_tokens = tokens * way.by_heads;
  return problem;
}

}  // namespace

DeviceWeights device_weights(const Transformer& model, const Split& split) {
  const Parameters p = parameters_of(model);
  const double tensor = split.tensor;
  const auto embedding = static_cast<double>(p.embedding) / tensor;
  const auto logits = static_cast<double>(p.logits) / tensor + static_cast<double>(p.last_norm);
  // The first stage embeds, the last has the logits; a tied matrix lies on both.
  const double last = split.stages > 1 && model.tied ? embedding : logits;
  return {.layers = ceil_of(model.layers, split.stages),
          .layer = static_cast<double>(p.attention + p.feed_forward) / tensor +
                   static_cast<double>(p.norms),
          .ends = split.stages == 1 ? embedding + logits : std::max(embedding, last)};
}

Job attention_job(const Training& training, const StepWay& way, const Machine& machine,
                  bool windowed) {
  const Transformer& m = training.model;
  const std::int64_t dealt = std::int64_t{way.split.tensor} * way.by_heads;
  Job job;
  job.problem.shape = {.batch = 1,
                       .q_heads = (m.heads + dealt - 1) / dealt,
                       .kv_heads = (m.kv_heads + dealt - 1) / dealt,
                       .q_tokens = training.tokens,
                       .kv_tokens = training.tokens,
                       .head_dim = m.head_dim,
                       .v_dim = m.head_dim};
  job.problem.dtype = DType::bf16;
  job.problem.scale = default_scale(m.head_dim);
  const std::string mask =
      windowed ? "causal+window:" + std::to_string(m.window - 1) + ",0" : "causal";
  job.problem.mask = parse_mask(mask).bind(training.tokens, training.tokens);
  job.options.ranks = way.ring();
  job.options.layout = windowed ? LayoutKind::contiguous : LayoutKind::zigzag;
  if (way.by_nodes && !windowed) {
    job.options.schedule = ScheduleKind::double_ring;
    job.options.node_ranks = machine.node_ranks;
    job.options.slots = machine.node_ranks + 1;
  }
  job.passes = {Pass::forward, Pass::backward};
  return job;
}

Machine ring_machine(const Machine& machine, int group) {
  Machine seen = machine;
  seen.node_ranks = std::max(1, machine.node_ranks / group);
  return seen;
}

double ring_bytes(const Training& training, const StepWay& way, const Machine& machine,
                  const MemoryOf& memory_of) {
  const Machine seen = ring_machine(machine, way.group());
  const Job job = attention_job(training, way, seen, training.model.all_windowed());
  const auto ring = static_cast<double>(bytes_of_many(job, seen, memory_of));
  // Gradients, too.
  return ring + 2 * dealt_bytes(dealt_problem(training, way), way.by_heads);
}

RingCost ring_cost(const Training& training, const StepWay& way, const Machine& machine,
                   const MemoryOf& memory_of) {
  const Transformer& m = training.model;
  const Machine seen = ring_machine(machine, way.group());
  const double windowed = windowed_share(m);
  RingCost cost{.bytes = ring_bytes(training, way, machine, memory_of)};
  for (const bool is_windowed : {false, true}) {
    const double share = is_windowed ? windowed : 1 - windowed;
    if (share == 0) continue;
    Job job = attention_job(training, way, seen, is_windowed);
    job.passes = {Pass::forward};
    cost.forward_s += share * seconds_of_many(job, seen);
    job.passes = {Pass::backward};
    cost.backward_s += share * seconds_of_many(job, seen);
  }
  // Going backward, gradients of what came back go there, and of what went there come back.
  cost.heads_s = dealing_seconds(dealt_problem(training, way), way.by_heads,
                                 ring_machine(machine, way.split.tensor));
  return cost;
}

StepMemory step_memory(const Training& training, const StepWay& way, double ring_bytes) {
  const Transformer& m = training.model;
  const Device device(training, way.split);
  StepMemory memory;
  const bool cut = way.sharded == Sharded::weights;
  // Weights gathered where they are cut: of the layer at work and of the next one.
  const double gathered = cut ? 2 * device.layer_weights : 0;
  const double own = device.weights / (cut ? device.owners : 1);
  memory.weights = kWeightBytes * (own + gathered);
  memory.gradients = kGradientBytes * (own + gathered / 2);
  memory.optimizer = kOptimizerBytes * device.weights / device.owners;
  const double under_way = std::min(device.rounds, static_cast<double>(way.split.stages));
  memory.kept = under_way * device.layers * device.tokens * kept_bytes(m, way.kept, device.tensor);
  memory.ring = ring_bytes;
  const double at_once = training.block_tokens > 0
                             ? std::min(device.tokens, static_cast<double>(training.block_tokens))
                             : device.tokens;
  // Numbers and their gradients.
  const double feed_forward = 2 * kActivationBytes * feed_forward_numbers(m) / device.tensor;
  const double logits = 2 * kLogitBytes * static_cast<double>(m.vocabulary) / device.tensor;
  memory.at_work = at_once * std::max(feed_forward, logits);
  return memory;
}

StepTime step_time(const Training& training, const StepWay& way, const RingCost& ring,
                   const Machine& machine) {
  const Transformer& m = training.model;
  const Device device(training, way.split);
  const double flops_per_s = machine.products_per_s();
  const double product = device.layers * static_cast<double>(layer_product_flops(m)) *
                         device.tokens / device.tensor / flops_per_s;
  const double logits =
      static_cast<double>(logit_flops(m)) * device.tokens / device.tensor / flops_per_s;
  const double forward = device.layers * ring.forward_s;
  const double backward = device.layers * ring.backward_s;
  const double exchange =
      device.layers * kCollectives *
      collective_seconds(kActivationBytes * device.tokens * static_cast<double>(m.hidden),
                         device.tensor, machine.inside);
  const bool anew = way.kept != Kept::everything;
  const bool attention_anew = way.kept == Kept::inputs;
  StepTime time;
  time.products = device.rounds * 3 * (product + logits);
  time.attention = device.rounds * (forward + backward);
  time.heads = device.rounds * (attention_anew ? 3 : 2) * device.layers * ring.heads_s;
  time.recomputed = device.rounds * ((anew ? product : 0) + (attention_anew ? forward : 0));
  time.tensor = device.rounds * (anew ? 3 : 2) * exchange;
  const double all = time.products + time.attention + time.heads + time.recomputed + time.tensor;
  time.bubble = (way.split.stages - 1) * all / device.rounds / static_cast<double>(training.pieces);
  const double before = product + logits + forward + device.layers * ring.heads_s;
  time.weights = weight_seconds(device, way, machine, before, all / device.rounds - before);
  time.optimizer = kUpdateBytes * device.weights / device.owners / machine.memory_bytes_per_s;
  return time;
}

double step_flops(const Training& training) {
  const Transformer& m = training.model;
  const auto tokens = static_cast<double>(training.tokens);
  const auto window = static_cast<double>(std::min(m.window, training.tokens));
  const double all_pairs = tokens * (tokens + 1) / 2;
  const double windowed_pairs = window * tokens - window * (window - 1) / 2;
  const double windowed = windowed_share(m);
  const double pairs = (1 - windowed) * all_pairs + windowed * windowed_pairs;
  const double attention = 4 * static_cast<double>(m.heads * m.head_dim) * pairs;
  const auto layers = static_cast<double>(m.layers);
  const double products = tokens * (layers * static_cast<double>(layer_product_flops(m)) +
                                    static_cast<double>(logit_flops(m)));
  return 3 * static_cast<double>(training.sequences) * (products + layers * attention);
}

}  // namespace ringlab::model
