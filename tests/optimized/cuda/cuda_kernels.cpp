#include "tests/optimized/cuda/cuda_kernels.h"

#include <cctype>
#include <limits>
#include <utility>
#include <vector>

#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/visible_keys.h"
#include "tests/optimized/cuda/block_shape.h"

namespace ringlab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kLog2e = 1.4426950408889634;

/// The keys of one chunk that one rank's queries see.
struct ChunkMask {
  std::vector<KeyRange> rows;
  std::vector<TileKeys> tiles;
  std::int64_t keys;
  ChunkMask(const Problem& problem, const Positions& queries, const Positions& chunk,
            std::int32_t tile_queries)
      : rows(visible_rows(problem.mask, queries, chunk)),
        tiles(visible_to_tiles(rows, tile_queries)),
        keys(chunk.size()) {}
  BlockMask view() const {
    return {.rows = rows.data(), .tiles = tiles.data(), .hides_nothing = sees_all(rows, keys)};
  }
};

template <class Element>
using ForwardFunction = std::function<void(const ForwardCall<Element>&, std::uint64_t seed)>;

/// Memory that has not been written is NaN. `tile_queries` is of the mask.
template <class Element>
AttentionOutput run_forward(const KernelTrial& trial, const ForwardFunction<Element>& kernel,
                            std::uint64_t seed, std::int32_t tile_queries) {
  const Shape& s = trial.problem.shape;
  AttentionOutput output{Tensor<double>(s.out()), Tensor<double>(s.lse())};
  const int ranks = trial.q_layout.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const Positions& queries = trial.q_layout.positions(rank);
    const std::vector<Element> q = take<Element>(trial.tensors.q, queries);
    const auto rows = static_cast<std::size_t>(s.batch * s.q_heads * queries.size());
    const auto channels = static_cast<std::size_t>(s.v_dim);
    std::vector<SoftmaxState<float>> states(rows, {kNaN, kNaN});
    std::vector<float> accs(rows * channels, kNaN), lse(rows, kNaN);
    std::vector<Element> out(rows * channels, static_cast<Element>(double{kNaN}));
    for (int hop = 0; hop < ranks; ++hop) {
      const Positions& keys = trial.kv_layout.positions((rank + hop) % ranks);
      const std::vector<Element> k = take<Element>(trial.tensors.k, keys);
      const std::vector<Element> v = take<Element>(trial.tensors.v, keys);
      const ChunkMask mask(trial.problem, queries, keys, tile_queries);
      kernel({.shape = block_shape(s, queries.size(), keys.size()),
              .q = q.data(),
              .k = k.data(),
              .v = v.data(),
              .mask = mask.view(),
              .scale = static_cast<float>(trial.problem.scale * kLog2e),
              .begins = hop == 0,
              .finishes = hop == ranks - 1,
              .running = {states.data(), accs.data()},
              .out = out.data(),
              .lse = lse.data()},
             seed + static_cast<std::uint64_t>(hop));
    }
    put(output.out, queries, out);
    put(output.lse, queries, lse);
  }
  return output;
}

template <class Element>
AttentionGradients run_backward(const KernelTrial& trial, const AttentionOutput& output,
                                const BackwardFunction<Element>& kernel,
                                const GradientOptions& options) {
  const Shape& s = trial.problem.shape;
  AttentionGradients gradients{Tensor<double>(s.q()), Tensor<double>(s.k()), Tensor<double>(s.v())};
  const int ranks = trial.q_layout.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const Positions& queries = trial.q_layout.positions(rank);
    const std::vector<Element> q = take<Element>(trial.tensors.q, queries);
    const std::vector<Element> dout = take<Element>(trial.dout, queries);
    const std::vector<float> lse = take<float>(output.lse, queries);
    const std::vector<float> delta = delta_of<float>(trial, output, queries);
    for (int hop = 0; hop < ranks; ++hop) {
      const Positions& keys = trial.kv_layout.positions((rank + hop) % ranks);
      const std::vector<Element> k = take<Element>(trial.tensors.k, keys);
      const std::vector<Element> v = take<Element>(trial.tensors.v, keys);
      std::vector<float> dq = take<float>(gradients.dq, queries);
      std::vector<float> dk = take<float>(gradients.dk, keys);
      std::vector<float> dv = take<float>(gradients.dv, keys);
      const BlockShape shape = block_shape(s, queries.size(), keys.size());
      const ChunkMask mask(trial.problem, queries, keys,
                           backward_portable_tile_queries(shape.head_dim, shape.v_dim));
      kernel({.shape = shape,
              .q = q.data(),
              .k = k.data(),
              .v = v.data(),
              .dout = dout.data(),
              .lse = lse.data(),
              .delta = delta.data(),
              .mask = mask.view(),
              .scale = static_cast<float>(trial.problem.scale * kLog2e),
              .deterministic = options.deterministic,
              .dq = dq.data(),
              .dk = dk.data(),
              .dv = dv.data()},
             options.seed + static_cast<std::uint64_t>(2 * hop));
      put(gradients.dq, queries, dq);
      put(gradients.dk, keys, dk);
      put(gradients.dv, keys, dv);
    }
  }
  finish_gradients(gradients, trial.problem);
  return gradients;
}

/// "lazy_rescaling_64"
std::string label(std::string_view name, std::int32_t channels) {
  std::string text = std::string(name) + "_" + std::to_string(channels);
  for (char& letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return text;
}

BlockKernel named(BlockKernel kernel, std::string_view name) {
  kernel.name = std::string(name) + "_" + std::string(dtype_info(kernel.dtype).name);
  return kernel;
}

/// Causal, of one head, with 16 channels.
KernelCase causal(std::int64_t queries, std::int64_t keys, unsigned seed) {
  return {.shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = 16, .v_dim = 16},
          .mask = "causal",
          .seed = seed};
}

/// A case as wide as a version is made for: two query heads for a K/V head.
KernelCase case_for(std::int32_t channels, std::int64_t queries, std::int64_t keys) {
  return {.shape = {.q_heads = 2,
                    .kv_heads = 1,
                    .q_tokens = queries,
                    .kv_tokens = keys,
                    .head_dim = channels,
                    .v_dim = channels},
          .seed = static_cast<unsigned>(1000 * queries + keys)};
}

}  // namespace

template <class Element>
BlockKernel forward_hopper_kernel(EmulatedHopper<Element> run, std::int32_t tile_queries,
                                  double exp_error) {
  BlockKernel kernel{.name = "", .dtype = dtype_of<Element>};
  kernel.forward = [run = std::move(run), tile_queries](const KernelTrial& trial,
                                                        std::uint64_t seed) {
    const Shape& s = trial.problem.shape;
    const EmulatedGrid grid{.blocks = 1 + static_cast<int>(seed % 3)};
    return run_forward<Element>(
        trial,
        [&](const ForwardCall<Element>& call, std::uint64_t hop_seed) {
          run(call, {grid.blocks, hop_seed});
        },
        seed,
        tile_queries > 0 ? tile_queries
                         : forward_hopper_tile_queries(static_cast<std::int32_t>(s.head_dim),
                                                       static_cast<std::int32_t>(s.v_dim)));
  };
  kernel.profile = [exp_error](const KernelTrial& trial) {
    NumericsProfile profile = hopper_profile(trial.problem.dtype, trial.blocks());
    profile.exp_error += exp_error;
    return profile;
  };
  kernel.spoilt_tiles_change_bits = true;
  return kernel;
}
template BlockKernel forward_hopper_kernel(EmulatedHopper<Half>, std::int32_t, double);
template BlockKernel forward_hopper_kernel(EmulatedHopper<BFloat16>, std::int32_t, double);

template <class Element>
BlockKernel backward_kernel(BackwardFunction<Element> run) {
  return portable_kernel<Element>({nullptr, std::move(run)});
}
template BlockKernel backward_kernel(BackwardFunction<Half>);
template BlockKernel backward_kernel(BackwardFunction<BFloat16>);

template <class Element>
BlockKernel portable_kernel(const PortableKernels<Element>& run) {
  BlockKernel kernel{.name = "", .dtype = dtype_of<Element>};
  if (run.forward) {
    kernel.forward = [run](const KernelTrial& trial, std::uint64_t seed) {
      return run_forward<Element>(trial, run.forward, seed, forward_portable_tile_queries());
    };
  }
  if (run.backward) {
    kernel.backward = [run](const KernelTrial& trial, const AttentionOutput& output,
                            const GradientOptions& options) {
      return run_backward<Element>(trial, output, run.backward, options);
    };
  }
  kernel.profile = [](const KernelTrial& trial) {
    return kernel_profile(trial.problem.dtype, trial.blocks());
  };
  return kernel;
}
template BlockKernel portable_kernel(const PortableKernels<Half>&);
template BlockKernel portable_kernel(const PortableKernels<BFloat16>&);

BlockKernel with_forward_hopper_cases(BlockKernel kernel) {
  // Full attention at 128 channels has the largest blocks, of 176 keys.
  kernel.groups = contract_cases({.random = 40,
                                  .widest = 128,
                                  .queries = {1, 63, 64, 65, 191, 192, 193, 385},
                                  .keys = {1, 127, 128, 129, 257, 400},
                                  .wide_queries = {1, 129},
                                  .wide_keys = {128, 175, 176, 177, 353},
                                  .rising = {300, 600, 2000},
                                  .keys_of_widths = 197,
                                  .masked = 660,
                                  .empty_rows = 430});
  KernelCase repeated = random_case(11, 128);
  repeated.shape.q_tokens = 200, repeated.shape.kv_tokens = 300, repeated.mask = "causal";
  kernel.repeated = {repeated};
  kernel.repetitions = 8;
  KernelCase spoilt = causal(270, 270, 4);  // token 133 is seen by some rows of a tile
  spoilt.layout = LayoutKind::striped, spoilt.ranks = 2;
  kernel.spoilt = {spoilt};
  kernel.weighs_any_score = true;
  return named(std::move(kernel), "forward_hopper");
}

BlockKernel with_backward_hopper_cases(BlockKernel kernel) {
  // Tiles of 128 queries at up to 64 channels, of 64 above; blocks of 128 keys.
  kernel.groups = contract_cases({.random = 6,
                                  .widest = 128,
                                  .queries = {1, 127, 128, 129},
                                  .keys = {1, 129, 257},
                                  .wide_queries = {64, 65},
                                  .wide_keys = {127, 128},
                                  .rising = {},
                                  .most_channels = 128,
                                  .keys_of_widths = 129,
                                  .masked = 300,
                                  .empty_rows = 230});
  kernel.repeated = {causal(140, 390, 31)};
  kernel.repeated[0].mask = "full";
  kernel.repetitions = 6;
  // Tiles of queries see a block in full, in part and not at all. Two blocks of keys: the bits of
  // their sums do not depend on their order.
  kernel.spoilt = {causal(256, 256, 4)};
  kernel.orders_are_drawn = true;
  return named(std::move(kernel), "backward_hopper");
}

BlockKernel with_portable_cases(BlockKernel kernel) {
  kernel.groups = contract_cases({.queries = {1, 15, 32, 63, 64, 65, 129},
                                  .keys = {1, 63, 64, 65, 128, 200},
                                  .wide_queries = {},
                                  .wide_keys = {},
                                  .rising = {}});
  KernelCase repeated = random_case(5, 64);
  repeated.shape.q_tokens = 100, repeated.shape.kv_tokens = 250;
  repeated.mask = "full", repeated.ranks = 1;
  // The queries stand at the end, in the second document.
  KernelCase documents = causal(64, 130, 0);
  documents.mask = "documents:30,100";
  kernel.repeated = {repeated};
  kernel.spoilt = {causal(70, 70, 6), documents};
  kernel.orders_are_drawn = true;
  return named(std::move(kernel), "portable");
}

BlockKernel version_kernel(const HopperVersion& version, EmulatedHopper<BFloat16> run) {
  BlockKernel kernel =
      forward_hopper_kernel<BFloat16>(std::move(run), version.tile_queries, version.exp_error);
  kernel.name = label(version.name, version.channels);
  CaseGroup all_seen{.name = "all_seen", .cases = {}};
  for (const std::int64_t keys : {1, 290}) {
    for (const InputKind inputs : {InputKind::normal, InputKind::early_maxima}) {
      all_seen.cases.push_back(case_for(version.channels, 70, keys));
      all_seen.cases.back().inputs = inputs;
    }
  }
  kernel.groups = {std::move(all_seen)};
  if (version.needs_everything_seen) return kernel;
  KernelCase chunked = case_for(version.channels, 200, 330);
  chunked.ranks = 2, chunked.layout = LayoutKind::zigzag;
  chunked.inputs = InputKind::early_maxima;
  kernel.groups.push_back(masked(chunked, {"causal", "window:200,170"}));
  return kernel;
}

BlockKernel version_kernel(const HopperBackwardVersion& version, BackwardFunction<BFloat16> run) {
  BlockKernel kernel = backward_kernel<BFloat16>(std::move(run));
  kernel.name = label(version.name, version.channels);
  kernel.orders = {false};
  KernelCase c = case_for(version.channels, 200, 290);
  c.seed = 7;
  kernel.groups = {masked(c, {"full", "causal", "window:200,60"})};
  return kernel;
}

}  // namespace ringlab::cuda
