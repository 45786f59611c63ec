#include "tests/optimized/cuda/hopper/hopper_trial.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <vector>

#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/kernels.h"
#include "reference/attention/exact.h"

namespace ringlab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kLog2e = 1.4426950408889634;

/// What one rank's queries have come to.
template <class Element>
struct RankResult {
  std::vector<SoftmaxState<float>> states;
  std::vector<float> accs, lse;
  std::vector<Element> out;
  RankResult(std::size_t rows, std::size_t channels)
      : states(rows, {kNaN, kNaN}),
        accs(rows * channels, kNaN),
        lse(rows, kNaN),
        out(rows * channels, static_cast<Element>(double{kNaN})) {}
};

/// Whether zeros would pass.
bool tells_nothing(const ExactForward& exact, const ForwardTolerance& allowed) {
  for (std::size_t i = 0; i < exact.out.values().size(); ++i) {
    if (std::abs(exact.out.values()[i]) > allowed.out.values()[i]) return false;
  }
  return true;
}

}  // namespace

template <class Element>
AttentionOutput run_hopper(const RingTrial& trial, const EmulatedHopper<Element>& kernel,
                           const EmulatedGrid& grid, std::int32_t tile_queries) {
  const Shape& s = trial.problem.shape;
  AttentionOutput output{Tensor<double>(s.out()), Tensor<double>(s.lse())};
  const int ranks = trial.q_layout.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const Positions& queries = trial.q_layout.positions(rank);
    const std::vector<Element> q = take<Element>(trial.tensors.q, queries);
    RankResult<Element> result(static_cast<std::size_t>(s.batch * s.q_heads * queries.size()),
                               static_cast<std::size_t>(s.v_dim));
    for (int hop = 0; hop < ranks; ++hop) {
      const Positions& keys = trial.kv_layout.positions((rank + hop) % ranks);
      const std::vector<Element> k = take<Element>(trial.tensors.k, keys);
      const std::vector<Element> v = take<Element>(trial.tensors.v, keys);
      const BlockShape shape = block_shape(s, queries.size(), keys.size());
      const ChunkMask mask(trial.problem, queries, keys,
                           tile_queries > 0
                               ? tile_queries
                               : forward_hopper_tile_queries(shape.head_dim, shape.v_dim));
      BlockMask view = mask.view();
      view.hides_nothing = sees_all(mask.rows, keys.size());
      kernel({.shape = shape,
              .q = q.data(),
              .k = k.data(),
              .v = v.data(),
              .mask = view,
              .scale = static_cast<float>(trial.problem.scale * kLog2e),
              .begins = hop == 0,
              .finishes = hop == ranks - 1,
              .running = {result.states.data(), result.accs.data()},
              .out = result.out.data(),
              .lse = result.lse.data()},
             {grid.blocks, grid.seed + static_cast<std::uint64_t>(hop)});
    }
    put(output.out, queries, result.out);
    put(output.lse, queries, result.lse);
  }
  return output;
}
template AttentionOutput run_hopper(const RingTrial&, const EmulatedHopper<Half>&,
                                    const EmulatedGrid&, std::int32_t);
template AttentionOutput run_hopper(const RingTrial&, const EmulatedHopper<BFloat16>&,
                                    const EmulatedGrid&, std::int32_t);

RingTrial backwards(RingTrial trial) {
  const Tensor<double> k = trial.tensors.k;
  const Extents& extents = k.extents();
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    trial.tensors.k(b, h, t, c) = k(b, h, extents.tokens - 1 - t, c);
  });
  return trial;
}

std::string judge_hopper(const RingTrial& trial, const AttentionOutput& got, double exp_error) {
  const ExactForward exact = exact_forward(trial.input());
  NumericsProfile profile = hopper_profile(trial.problem.dtype, trial.blocks());
  profile.exp_error += exp_error;
  const ForwardTolerance allowed = forward_tolerance(trial.input(), exact, profile);
  if (trial.problem.mask.count_all() > 0 && tells_nothing(exact, allowed)) {
    return "no output is larger than its tolerance";
  }
  const Report report = compare_forward(got, exact, allowed);
  return report.passed() ? "" : report.summary();
}

std::string label(std::string_view name, std::int32_t channels) {
  std::string text = std::string(name) + "_" + std::to_string(channels);
  for (char& letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return text;
}

}  // namespace ringlab::cuda
