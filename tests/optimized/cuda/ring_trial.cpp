#include "tests/optimized/cuda/ring_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/portable/portable.h"
#include "reference/attention/exact.h"

namespace ringlab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kLog2e = 1.4426950408889634;
constexpr std::int64_t kFewestKeys = 32;  // of a block of keys of any of the kernels

Tensor<double> normal_tensor(const Extents& extents, DType dtype, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Tensor<double> tensor(extents);
  for (double& x : tensor.values()) x = round_to(dtype, normal(random));
  return tensor;
}

/// Scores that grow from key to key, so that every block has a new maximum.
void grow_scores(AttentionTensors& tensors, DType dtype) {
  const Extents& q = tensors.q.extents();
  for_each_index(q, [&](auto b, auto h, auto t, auto c) {
    tensors.q(b, h, t, c) = round_to(dtype, 1 + 0.25 * tensors.q(b, h, t, c));
  });
  const Extents& k = tensors.k.extents();
  for_each_index(k, [&](auto b, auto h, auto t, auto c) {
    const double height = 20 * static_cast<double>(t) / static_cast<double>(k.tokens) /
                          std::sqrt(static_cast<double>(k.channels));
    tensors.k(b, h, t, c) = round_to(dtype, height + 0.1 * tensors.k(b, h, t, c));
  });
}

template <class T>
T* data(std::vector<T>& values) {
  return values.data();
}

bool below(const Tensor<double>& exact, const Tensor<double>& allowed) {
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    if (std::abs(exact.values()[i]) > allowed.values()[i]) return false;
  }
  return true;
}

}  // namespace

std::string RingCase::text() const {
  return fmt::format(
      "seed {}: batch {}, heads {} / {}, tokens {} x {}, dims {} / {}, {}, {} ranks, {}, {}", seed,
      shape.batch, shape.q_heads, shape.kv_heads, shape.q_tokens, shape.kv_tokens, shape.head_dim,
      shape.v_dim, mask, ranks, layout_name(layout),
      inputs == InputKind::normal ? "normal" : "late maxima");
}

RingCase random_case(unsigned seed, std::int64_t widest) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  RingCase c{.shape = {}, .seed = seed};
  c.shape.batch = up_to(2);
  c.shape.kv_heads = up_to(2);
  c.shape.q_heads = c.shape.kv_heads * up_to(3);
  c.shape.q_tokens = up_to(150);
  c.shape.kv_tokens = random() % 2 ? c.shape.q_tokens : up_to(150);
  c.shape.head_dim = 8 * up_to(widest / 8);
  c.shape.v_dim = random() % 2 ? c.shape.head_dim : 8 * up_to(widest / 8);
  const std::int64_t cut = c.shape.kv_tokens / 3;
  const std::string masks[] = {"full",
                               "causal",
                               "window:3,2",
                               "causal+window:40,0",
                               fmt::format("documents:{},0,{}", cut, c.shape.kv_tokens - cut),
                               fmt::format("prefix:{}", cut)};
  c.mask = masks[random() % std::size(masks)];
  const LayoutKind layouts[] = {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag};
  c.layout = layouts[random() % 3];
  c.ranks = static_cast<int>(up_to(3));
  c.inputs = random() % 3 ? InputKind::normal : InputKind::late_maxima;
  return c;
}

std::int64_t RingTrial::blocks() const {
  std::int64_t blocks = 1;
  for (int rank = 0; rank < kv_layout.ranks(); ++rank) {
    blocks += kv_layout.positions(rank).size() / kFewestKeys + 3;
  }
  return blocks;
}

RingTrial make_trial(const RingCase& c, DType dtype) {
  std::mt19937 random(c.seed + 1000);
  RingTrial trial;
  trial.problem = {.shape = c.shape,
                   .dtype = dtype,
                   .scale = default_scale(c.shape.head_dim),
                   .mask = parse_mask(c.mask).bind(c.shape.q_tokens, c.shape.kv_tokens)};
  trial.tensors = {normal_tensor(c.shape.q(), dtype, random),
                   normal_tensor(c.shape.k(), dtype, random),
                   normal_tensor(c.shape.v(), dtype, random)};
  trial.dout = normal_tensor(c.shape.out(), dtype, random);
  if (c.inputs == InputKind::late_maxima) grow_scores(trial.tensors, dtype);
  trial.q_layout = Layout(c.layout, c.shape.q_tokens, c.ranks);
  trial.kv_layout = Layout(c.layout, c.shape.kv_tokens, c.ranks);
  return trial;
}

template <class Element>
AttentionOutput run_forward(const RingTrial& trial, const PortableKernels<Element>& kernels,
                            std::uint64_t seed) {
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
      const ChunkMask mask(trial.problem, queries, keys, forward_portable_tile_queries());
      kernels.forward({.shape = block_shape(s, queries.size(), keys.size()),
                       .q = q.data(),
                       .k = k.data(),
                       .v = v.data(),
                       .mask = mask.view(),
                       .scale = static_cast<float>(trial.problem.scale * kLog2e),
                       .begins = hop == 0,
                       .finishes = hop == ranks - 1,
                       .running = {states.data(), accs.data()},
                       .out = data(out),
                       .lse = data(lse)},
                      seed + static_cast<std::uint64_t>(hop));
    }
    put(output.out, queries, out);
    put(output.lse, queries, lse);
  }
  return output;
}
template AttentionOutput run_forward(const RingTrial&, const PortableKernels<Half>&, std::uint64_t);
template AttentionOutput run_forward(const RingTrial&, const PortableKernels<BFloat16>&,
                                     std::uint64_t);

namespace {

/// Σ_c dout out, to the last place.
std::vector<float> delta_of(const RingTrial& trial, const AttentionOutput& output,
                            const Positions& queries) {
  std::vector<float> delta;
  const Shape& s = trial.problem.shape;
  for_each_index({s.batch, s.q_heads, queries.size(), 1}, [&](auto b, auto h, auto t, auto) {
    double sum = 0;
    for (std::int64_t c = 0; c < s.v_dim; ++c) {
      sum += trial.dout(b, h, queries[t], c) * output.out(b, h, queries[t], c);
    }
    delta.push_back(static_cast<float>(sum));
  });
  return delta;
}

/// times scale, rounded.
void scale_round(Tensor<double>& gradient, double scale, DType dtype) {
  for (double& x : gradient.values()) {
    x = round_to(dtype, static_cast<double>(static_cast<float>(x) * static_cast<float>(scale)));
  }
}

}  // namespace

template <class Element>
AttentionGradients run_backward(const RingTrial& trial, const AttentionOutput& output,
                                const PortableKernels<Element>& kernels,
                                const GradientOptions& options) {
  const Shape& s = trial.problem.shape;
  AttentionGradients gradients{Tensor<double>(s.q()), Tensor<double>(s.k()), Tensor<double>(s.v())};
  const int ranks = trial.q_layout.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const Positions& queries = trial.q_layout.positions(rank);
    const std::vector<Element> q = take<Element>(trial.tensors.q, queries);
    const std::vector<Element> dout = take<Element>(trial.dout, queries);
    const std::vector<float> lse = take<float>(output.lse, queries);
    const std::vector<float> delta = delta_of(trial, output, queries);
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
      kernels.backward({.shape = shape,
                        .q = q.data(),
                        .k = k.data(),
                        .v = v.data(),
                        .dout = dout.data(),
                        .lse = lse.data(),
                        .delta = delta.data(),
                        .mask = mask.view(),
                        .scale = static_cast<float>(trial.problem.scale * kLog2e),
                        .deterministic = options.deterministic,
                        .dq = data(dq),
                        .dk = data(dk),
                        .dv = data(dv)},
                       options.seed + static_cast<std::uint64_t>(2 * hop));
      put(gradients.dq, queries, dq);
      put(gradients.dk, keys, dk);
      put(gradients.dv, keys, dv);
    }
  }
  scale_round(gradients.dq, trial.problem.scale, trial.problem.dtype);
  scale_round(gradients.dk, trial.problem.scale, trial.problem.dtype);
  scale_round(gradients.dv, 1, trial.problem.dtype);
  return gradients;
}
template AttentionGradients run_backward(const RingTrial&, const AttentionOutput&,
                                         const PortableKernels<Half>&, const GradientOptions&);
template AttentionGradients run_backward(const RingTrial&, const AttentionOutput&,
                                         const PortableKernels<BFloat16>&, const GradientOptions&);

std::string judge(const RingTrial& trial, const AttentionOutput& got) {
  const ExactForward exact = exact_forward(trial.input());
  const ForwardTolerance allowed =
      forward_tolerance(trial.input(), exact, kernel_profile(trial.problem.dtype, trial.blocks()));
  if (trial.problem.mask.count_all() > 0 && below(exact.out, allowed.out)) {
    return "no output is larger than its tolerance";
  }
  const Report report = compare_forward(got, exact, allowed);
  return report.passed() ? "" : report.summary();
}

std::string judge(const RingTrial& trial, const AttentionGradients& got) {
  const AttentionInput input = trial.input();
  const ExactBackward exact = exact_backward(input, trial.dout.view());
  const BackwardTolerance allowed = backward_tolerance(
      input, trial.dout.view(), exact, kernel_profile(trial.problem.dtype, trial.blocks()));
  if (trial.problem.mask.count_all() > 0 && below(exact.dv, allowed.dv)) {
    return "no gradient is larger than its tolerance";
  }
  Report report;
  report.tensors = {compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()),
                    compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()),
                    compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view())};
  return report.passed() ? "" : report.summary();
}

}  // namespace ringlab::cuda
