// A transformer that serves, on many devices: what each holds, and how long a prefill or a token takes.
//
// The model. Weights, activations and cache are bf16. Keys and values of all sequences are cut over
// `context` devices, heads and matrices over `tensor`, layers over `stages`, as for training. Either
// keys and values go round (pass-KV), or queries do and partial answers come home (pass-Q, Yang et al.
// 2024). A layer's products and its attention come one after the other, and each takes as long as its
// operations or as what it reads from memory, whichever is longer.
#pragma once

#include <cstdint>

#include "reference/model/job.h"
#include "reference/model/machine.h"
#include "reference/model/planner.h"
#include "reference/model/training/step.h"
#include "reference/model/training/transformer.h"

namespace ringlab::model {

/// New tokens behind cached ones: those of a prompt (prefill), or one of each sequence (decode).
struct Serving {
  Transformer model;
  std::int64_t tokens = 1;     ///< new ones of each sequence; one: a decode
  std::int64_t cached = 0;     ///< of each sequence, on the devices already
  std::int64_t sequences = 1;  ///< more than one of a decode only
  /// Tokens that the feed-forward network is computed for at a time; 0: all of a device.
  std::int64_t block_tokens = 4096;
  bool decodes() const { return tokens == 1; }
  std::int64_t keys() const { return cached + tokens; }
};

/// The tensors that travel between the devices of a ring: keys and values, or queries.
enum class Passed { keys, queries };

/// A way to split the devices. Sequences of a decode take turns in the stages, so that none waits.
struct ServeWay {
  Split split = {};
  Passed passed = Passed::keys;
  int by_heads = 1;  ///< neighbours that deal heads, as of a StepWay; the cache lies with its heads
  int ring() const { return split.context / by_heads; }
  /// Devices of one rank of a ring.
  int group() const { return split.tensor * by_heads; }
};

/// Bytes of the fullest device.
struct ServeMemory {
  double weights = 0;
  double cache = 0;        ///< keys and values of all sequences, new tokens too
  double activations = 0;  ///< of one layer at work: its attention, or its feed-forward network
  double total() const { return weights + cache + activations; }
};

/// Seconds until the next token of a sequence is there.
struct ServeTime {
  double products = 0;   ///< with learned matrices, or reading them
  double attention = 0;  ///< its ring, waiting too, or reading the cache
  double answers = 0;    ///< queries of a decode on their way, and partial answers
  double heads = 0;      ///< all-to-alls before and after, where heads are dealt
  double tensor = 0;     ///< exchanges between devices of a tensor group
  double stages = 0;     ///< from one stage to the next
  double total() const { return products + attention + answers + heads + tensor + stages; }
};

/// Attention of one layer on the ranks of a ring, which have some heads of one tensor group. Of a layer
/// with a window, cached tokens that none of the new ones see do not count.
Problem serve_problem(const Serving& serving, const ServeWay& way, bool windowed);

/// Bytes that all devices of all rings send in a layer without a window, by closed form; those of heads
/// that are dealt not.
double passed_bytes(const Serving& serving, const ServeWay& way);

/// `memory_of` is asked for a prefill whose keys travel.
ServeMemory serve_memory(const Serving& serving, const ServeWay& way, const MemoryOf& memory_of);

/// A prefill's rings are simulated, with queries in the place of keys where these travel, of more than
/// line_of() ranks by on_line(); a decode's exchange has a closed form, for all ranks
/// send at once. Errors as simulate_job().
ServeTime serve_time(const Serving& serving, const ServeWay& way, const Machine& machine);

/// Times and events of a prefill's ring in one layer: of so many ranks, or all where they are
/// fewer, with chunks as long. The layer has a window where all layers have one.
JobTimes prefill_times(const Serving& serving, const ServeWay& way, const Machine& machine,
                       int ranks);

/// New tokens a second, of all sequences.
double tokens_per_second(const Serving& serving, double seconds);

}  // namespace ringlab::model
