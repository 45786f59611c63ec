// A training step of a transformer on many devices: what each holds, and how long it takes.
//
// The model. Weights and activations are bf16, sums of gradients and the optimizer's numbers (Adam's
// two moments and the weights themselves) f32. Sequences are cut over `context` devices, which pass
// keys and values round a ring; heads and matrices over `tensor` devices, as Megatron does it (Korthikanti
// et al. 2022, activations between them are cut too); layers over `stages`, one forward one backward;
// sequences of a step over `replicas`. Devices of one tensor group are neighbours, then those of one
// ring. Products of a layer and its ring come one after the other: nothing of one hides the other.
#pragma once

#include <cstdint>

#include "reference/model/machine.h"
#include "reference/model/planner.h"
#include "reference/model/training/transformer.h"

namespace ringlab::model {

struct Split {
  int context = 1, tensor = 1, stages = 1, replicas = 1;
  int devices() const { return context * tensor * stages * replicas; }
  bool operator==(const Split&) const = default;
};

/// Learned numbers on the fullest device: `layers` layers of `layer` numbers each, and the ends.
struct DeviceWeights {
  double layers = 0, layer = 0;
  double ends = 0;  ///< embedding and logits
  double all() const { return layers * layer + ends; }
};
DeviceWeights device_weights(const Transformer& model, const Split& split);

/// Activations that a layer keeps for its backward pass: all that it needs; its input and the
/// answer of attention; its input alone. The rest is computed anew.
enum class Kept { everything, attention, inputs };

/// State cut over the devices that have the same weights (context and replicas): the optimizer's
/// numbers (ZeRO 1), or gradients and weights, too, gathered layer by layer (ZeRO 3, FSDP).
enum class Sharded { optimizer, weights };

/// The training to be planned: a model on sequences of one length, causal.
struct Training {
  Transformer model;
  std::int64_t tokens = 0;     ///< of a sequence
  std::int64_t sequences = 1;  ///< of a step
  /// Tokens that the feed-forward network and the logits are computed for at a time, where nothing of
  /// them is kept (Liu and Abbeel 2023); 0: all of a chunk.
  std::int64_t block_tokens = 4096;
  /// Pieces of a stage that take turns, so that others wait less (Narayanan et al. 2021).
  std::int64_t pieces = 1;
};

struct StepWay {
  Split split = {};
  Kept kept = Kept::everything;
  Sharded sharded = Sharded::optimizer;
  bool by_nodes = false;  ///< the schedule of rings: double:W where they span nodes
  /// Neighbours in a context that deal its heads among them (Jacobs et al. 2023): they have all of
  /// their tokens, for some heads, and a ring of fewer ranks is left. 1: all of it is a ring.
  int by_heads = 1;
  int ring() const { return split.context / by_heads; }
  /// Devices of one rank of a ring.
  int group() const { return split.tensor * by_heads; }
};

/// Bytes of the fullest device.
struct StepMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double kept = 0;  ///< activations of all layers of a stage and all sequences under way
  double ring = 0;  ///< of one layer's attention at work: what goes in and out, what the ring holds
  double at_work = 0;  ///< beyond that, of one layer's feed-forward network or the logits
  double total() const { return weights + gradients + optimizer + kept + ring + at_work; }
};

/// Seconds of the slowest device.
struct StepTime {
  double products = 0;    ///< with learned matrices, forward and backward
  double attention = 0;   ///< its rings, waiting too
  double heads = 0;       ///< all-to-alls before and after, where heads are dealt
  double recomputed = 0;  ///< what was not kept
  double tensor = 0;      ///< exchanges between devices of a tensor group
  double bubble = 0;      ///< of stages that wait for others
  double weights = 0;     ///< gathers and sums of weights and gradients, where nothing hides them
  double optimizer = 0;
  double total() const {
    return products + attention + heads + recomputed + tensor + bubble + weights + optimizer;
  }
};

/// The attention of one layer and sequence on the devices of its ring, as a job of its own: heads of
/// one tensor group, zigzag. Of a windowed layer: contiguous, in a plain ring.
Job attention_job(const Training& training, const StepWay& way, const Machine& machine,
                  bool windowed);
/// The machine as rings of such a way see it: nodes of fewer ranks, each of them a group of devices.
Machine ring_machine(const Machine& machine, int group);

/// Bytes of a rank while a layer's attention goes backward. Asked of a ring of few ranks with as long
/// chunks, for one of many holds no more.
double ring_bytes(const Training& training, const StepWay& way, const Machine& machine,
                  const MemoryOf& memory_of);

/// The attention of one sequence in a layer, the mean of all layers, on the ranks of its ring.
struct RingCost {
  double forward_s = 0, backward_s = 0;
  double heads_s = 0;  ///< of a pass: dealing heads, there and back
  double bytes = 0;    ///< ring_bytes()
};
/// It depends on context, tensor, by_nodes and by_heads alone. Errors as simulate_job().
RingCost ring_cost(const Training& training, const StepWay& way, const Machine& machine,
                   const MemoryOf& memory_of);

StepMemory step_memory(const Training& training, const StepWay& way, double ring_bytes);
StepTime step_time(const Training& training, const StepWay& way, const RingCost& ring,
                   const Machine& machine);

/// Operations of a step as it is usually counted: forward once and backward twice as many, for products
/// and for the pairs that the mask allows; nothing that is computed anew.
double step_flops(const Training& training);

}  // namespace ringlab::model
