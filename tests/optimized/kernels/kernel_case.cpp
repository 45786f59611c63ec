#include "tests/optimized/kernels/kernel_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "reference/attention/exact.h"
#include "reference/core/mask_text.h"

namespace ringlab {
namespace {

Tensor<double> normal_tensor(const Extents& extents, DType dtype, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Tensor<double> tensor(extents);
  for (double& x : tensor.values()) x = round_to(dtype, normal(random));
  return tensor;
}

void order_scores(AttentionTensors& tensors, DType dtype, InputKind inputs) {
  for (double& x : tensors.q.values()) x = round_to(dtype, 1 + 0.25 * x);
  const Extents& k = tensors.k.extents();
  for_each_index(k, [&](auto b, auto h, auto t, auto c) {
    const auto place = inputs == InputKind::late_maxima ? t : k.tokens - 1 - t;
    const double height = 20 * static_cast<double>(place) / static_cast<double>(k.tokens) /
                          std::sqrt(static_cast<double>(k.channels));
    tensors.k(b, h, t, c) = round_to(dtype, height + 0.1 * tensors.k(b, h, t, c));
  });
}

Layout layout_of(const KernelCase& c, std::int64_t tokens, std::mt19937& random) {
  const Layout layout(c.layout, tokens, c.ranks);
  if (!c.shuffled) return layout;
  std::vector<Positions> parts;
  for (int rank = 0; rank < c.ranks; ++rank) {
    std::vector<std::int64_t> rows = layout.positions(rank).to_list();
    std::shuffle(rows.begin(), rows.end(), random);
    parts.push_back(Positions::from_list(rows));
  }
  return Layout::from_parts(parts);
}

bool below(const Tensor<double>& exact, const Tensor<double>& allowed) {
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    if (std::abs(exact.values()[i]) > allowed.values()[i]) return false;
  }
  return true;
}

}  // namespace

std::string KernelCase::text() const {
  constexpr const char* kInputs[] = {"normal", "late maxima", "early maxima"};
  return fmt::format(
      "seed {}: batch {}, heads {} / {}, tokens {} x {}, dims {} / {}, {}, {} ranks, {}{}, {}{}",
      seed, shape.batch, shape.q_heads, shape.kv_heads, shape.q_tokens, shape.kv_tokens,
      shape.head_dim, shape.v_dim, mask, ranks, layout_name(layout), shuffled ? " shuffled" : "",
      kInputs[static_cast<int>(inputs)],
      modifiers.changes_scores() || modifiers.dropout != 0 ? ", modified" : "");
}

Mask mask_of(const std::string& text, std::int64_t q_tokens, std::int64_t kv_tokens) {
  const auto bits = [&](const std::string&) {
    std::vector<std::uint8_t> all;
    for (std::int64_t n = 0; n < q_tokens * kv_tokens; ++n) all.push_back(n * 7 % 5 < 3);
    return BitMask{.q_tokens = q_tokens, .kv_tokens = kv_tokens, .bits = all, .source = ""};
  };
  return parse_mask(text, bits).bind(q_tokens, kv_tokens);
}

KernelCase random_case(unsigned seed, std::int64_t widest, std::int64_t step) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  KernelCase c{.shape = {}, .seed = seed};
  c.shape.batch = up_to(2);
  c.shape.kv_heads = up_to(2);
  c.shape.q_heads = c.shape.kv_heads * up_to(3);
  c.shape.q_tokens = up_to(150);
  c.shape.kv_tokens = random() % 2 ? c.shape.q_tokens : up_to(150);
  c.shape.head_dim = step * up_to(widest / step);
  c.shape.v_dim = random() % 2 ? c.shape.head_dim : step * up_to(widest / step);
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

std::int64_t KernelTrial::blocks(std::int64_t fewest_keys) const {
  std::int64_t blocks = 1;
  for (int rank = 0; rank < kv_layout.ranks(); ++rank) {
    blocks += kv_layout.positions(rank).size() / fewest_keys + 3;
  }
  return blocks;
}

KernelTrial make_trial(const KernelCase& c, DType dtype) {
  std::mt19937 random(c.seed + 1000);
  KernelTrial trial;
  trial.problem = {.shape = c.shape,
                   .dtype = dtype,
                   .scale = default_scale(c.shape.head_dim),
                   .mask = mask_of(c.mask, c.shape.q_tokens, c.shape.kv_tokens),
                   .modifiers = c.modifiers};
  trial.tensors = {normal_tensor(c.shape.q(), dtype, random),
                   normal_tensor(c.shape.k(), dtype, random),
                   normal_tensor(c.shape.v(), dtype, random)};
  trial.dout = normal_tensor(c.shape.out(), dtype, random);
  if (c.inputs != InputKind::normal) order_scores(trial.tensors, dtype, c.inputs);
  trial.q_layout = layout_of(c, c.shape.q_tokens, random);
  trial.kv_layout = layout_of(c, c.shape.kv_tokens, random);
  trial.seed = c.seed;
  return trial;
}

void finish_gradients(AttentionGradients& gradients, const Problem& problem) {
  for (auto* scaled : {&gradients.dq, &gradients.dk}) {
    for (double& x : scaled->values()) {
      x = problem.dtype == DType::f64
              ? x * problem.scale
              : static_cast<double>(static_cast<float>(x) * static_cast<float>(problem.scale));
    }
  }
  for (auto* gradient : {&gradients.dq, &gradients.dk, &gradients.dv}) {
    for (double& x : gradient->values()) x = round_to(problem.dtype, x);
  }
}

AttentionOutput exact_output(const KernelTrial& trial) {
  const ExactForward exact = exact_forward(trial.input());
  AttentionOutput output{exact.out, exact.lse};
  for (double& x : output.out.values()) x = round_to(trial.problem.dtype, x);
  return output;
}

std::string judge(const KernelTrial& trial, const AttentionOutput& got,
                  const NumericsProfile& profile) {
  const ExactForward exact = exact_forward(trial.input());
  const ForwardTolerance allowed = forward_tolerance(trial.input(), exact, profile);
  if (trial.problem.mask.count_all() > 0 && below(exact.out, allowed.out)) {
    return "no output is larger than its tolerance";
  }
  const Report report = compare_forward(got, exact, allowed);
  return report.passed() ? "" : report.summary();
}

std::string judge(const KernelTrial& trial, const AttentionGradients& got,
                  const NumericsProfile& profile) {
  const AttentionInput input = trial.input();
  const ExactBackward exact = exact_backward(input, trial.dout.view());
  const BackwardTolerance allowed = backward_tolerance(input, trial.dout.view(), exact, profile);
  if (trial.problem.mask.count_all() > 0 && below(exact.dv, allowed.dv)) {
    return "no gradient is larger than its tolerance";
  }
  Report report;
  report.tensors = {compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()),
                    compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()),
                    compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view())};
  return report.passed() ? "" : report.summary();
}

}  // namespace ringlab
