#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <set>

#include "tests/optimized/kernels/block_kernel.h"

namespace ringlab {
namespace {

std::string check_passes(const BlockKernel& kernel, const KernelTrial& trial, std::uint64_t seed) {
  const NumericsProfile profile = kernel.profile(trial);
  const AttentionOutput output = kernel.forward ? kernel.forward(trial, seed) : exact_output(trial);
  std::string wrong = kernel.forward ? judge(trial, output, profile) : "";
  for (const bool deterministic : kernel.orders) {
    if (!wrong.empty() || !kernel.backward) break;
    wrong = judge(trial, kernel.backward(trial, output, {deterministic, seed}), profile);
  }
  return wrong;
}

/// Rows of queries and keys of the first batch and K/V head that a spoiler reaches.
struct Reached {
  std::int64_t group;  ///< query heads of the first K/V head
  std::set<std::int64_t> rows, keys;
  bool only_first_head;  ///< of queries

  Reached(const KernelTrial& trial, const Spoiler& spoiler)
      : group(trial.problem.shape.q_heads / trial.problem.shape.kv_heads),
        only_first_head(spoiler.where == Spoiler::Where::q ||
                        spoiler.where == Spoiler::Where::dout) {
    const Shape& s = trial.problem.shape;
    const Mask& mask = trial.problem.mask;
    for (std::int64_t row = 0; row < s.q_tokens; ++row) {
      if (only_first_head ? row == spoiler.token : mask.allows(row, spoiler.token))
        rows.insert(row);
    }
    for (std::int64_t key = 0; key < s.kv_tokens; ++key) {
      for (const std::int64_t row : rows) {
        if (mask.allows(row, key)) keys.insert(key);
      }
    }
    if (keys.empty()) rows.clear();  // a query that sees nothing
  }
  bool row(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return batch == 0 && head < (only_first_head ? 1 : group) && rows.contains(row);
  }
  bool key(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return batch == 0 && head == 0 && keys.contains(key);
  }
};

enum class Shows { must, may, must_not };

/// Empty, or the first row of `got` that is not as it should be: rows for which `is_reached` holds
/// have something that is not finite, and the others are those of `clean`. Reached rows become
/// those of `clean`.
template <class IsReached>
std::string compare_rows(const char* name, Tensor<double>& got, const Tensor<double>& clean,
                         Shows shows, bool same_bits, const IsReached& is_reached) {
  const Extents& e = got.extents();
  std::string wrong;
  for_each_index({e.batch, e.heads, e.tokens, 1}, [&](auto b, auto h, auto t, auto) {
    bool finite = true, same = true;
    for (std::int64_t c = 0; c < e.channels; ++c) {
      const double x = got(b, h, t, c), was = clean(b, h, t, c);
      finite &= std::isfinite(x) || x == was;
      same &= x == was;
    }
    const bool reached = is_reached(b, h, t);
    const bool good = reached ? shows == Shows::may || finite == (shows == Shows::must_not)
                              : finite && (same || !same_bits);
    if (!good && wrong.empty()) {
      wrong = fmt::format(
          "{} of batch {}, head {}, token {} {}", name, b, h, t,
          reached ? "hides what is no number" : "is not what it is without what it does not see");
    }
    for (std::int64_t c = 0; reached && c < e.channels; ++c) got(b, h, t, c) = clean(b, h, t, c);
  });
  return wrong;
}

KernelTrial spoilt(KernelTrial trial, const Spoiler& spoiler) {
  using Where = Spoiler::Where;
  Tensor<double>& tensor = spoiler.where == Where::q   ? trial.tensors.q
                           : spoiler.where == Where::k ? trial.tensors.k
                           : spoiler.where == Where::v ? trial.tensors.v
                                                       : trial.dout;
  tensor(0, 0, spoiler.token, (5 + trial.seed) % tensor.extents().channels) = spoiler.bad;
  return trial;
}

/// A score may be -inf, and a pair may be dropped: then there is nothing to see.
Shows sure(const KernelTrial& trial, const Spoiler& spoiler) {
  const bool weighs = spoiler.where == Spoiler::Where::v || std::isnan(spoiler.bad);
  return weighs && trial.problem.modifiers.dropout == 0 ? Shows::must : Shows::may;
}

std::string check_spoilt_output(const BlockKernel& kernel, const KernelTrial& trial,
                                const Spoiler& spoiler, std::uint64_t seed) {
  using Where = Spoiler::Where;
  const Reached reached(trial, spoiler);
  const auto is_reached = [&](auto b, auto h, auto t) { return reached.row(b, h, t); };
  const AttentionOutput clean = kernel.forward(trial, seed);
  AttentionOutput got = kernel.forward(spoilt(trial, spoiler), seed);
  const Shows shows = sure(trial, spoiler);
  const bool same_bits = !kernel.spoilt_tiles_change_bits;
  std::string wrong = compare_rows("out", got.out, clean.out, shows, same_bits, is_reached);
  if (wrong.empty()) {
    wrong =
        compare_rows("lse", got.lse, clean.lse, spoiler.where == Where::v ? Shows::must_not : shows,
                     same_bits, is_reached);
  }
  if (wrong.empty() && !same_bits) wrong = judge(trial, got, kernel.profile(trial));
  return wrong;
}

/// The output is what a forward pass would have given the rows that see it.
std::string check_spoilt_gradients(const BlockKernel& kernel, const KernelTrial& trial,
                                   const Spoiler& spoiler, const GradientOptions& options) {
  using Where = Spoiler::Where;
  const Reached reached(trial, spoiler);
  AttentionOutput output = exact_output(trial);
  const AttentionGradients clean = kernel.backward(trial, output, options);
  for_each_index(output.out.extents(), [&](auto b, auto h, auto t, auto c) {
    if (!reached.row(b, h, t) || spoiler.where == Where::dout) return;
    output.out(b, h, t, c) = std::nan("");
    if (spoiler.where != Where::v) output.lse(b, h, t, 0) = std::nan("");
  });
  AttentionGradients got = kernel.backward(spoilt(trial, spoiler), output, options);
  const auto row = [&](auto b, auto h, auto t) { return reached.row(b, h, t); };
  const auto key = [&](auto b, auto h, auto t) { return reached.key(b, h, t); };
  const Shows shows = sure(trial, spoiler);
  // P and dO are numbers where a value is none: kernels may spoil dV of such rows, and need not.
  const Shows in_dv = spoiler.where == Where::v ? Shows::may : shows;
  std::string wrong = compare_rows("dq", got.dq, clean.dq, shows, true, row);
  if (wrong.empty()) wrong = compare_rows("dk", got.dk, clean.dk, shows, true, key);
  if (wrong.empty()) wrong = compare_rows("dv", got.dv, clean.dv, in_dv, true, key);
  return wrong;
}

}  // namespace

std::string check(const BlockKernel& kernel, const KernelCase& c, std::uint64_t seed) {
  const std::string wrong = check_passes(kernel, make_trial(c, kernel.dtype), seed);
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

std::string check_spoilt(const BlockKernel& kernel, const KernelCase& c, const Spoiler& spoiler,
                         std::uint64_t seed) {
  using Where = Spoiler::Where;
  const KernelTrial trial = make_trial(c, kernel.dtype);
  std::string wrong;
  if (kernel.forward && spoiler.where != Where::dout) {
    wrong = check_spoilt_output(kernel, trial, spoiler, seed);
  }
  for (const bool deterministic : kernel.orders) {
    if (!kernel.backward || !wrong.empty() || !std::isnan(spoiler.bad)) break;
    wrong = check_spoilt_gradients(kernel, trial, spoiler, {deterministic, seed});
  }
  constexpr const char* kWhere[] = {"q", "k", "v", "dout"};
  return wrong.empty() ? ""
                       : fmt::format("{}: {} in {} of token {}: {}", c.text(), spoiler.bad,
                                     kWhere[static_cast<int>(spoiler.where)], spoiler.token, wrong);
}

double seconds(const BlockKernel& kernel, const KernelCase& c) {
  const KernelTrial trial = make_trial(c, kernel.dtype);
  const AttentionOutput output = exact_output(trial);
  const auto begin = std::chrono::steady_clock::now();
  if (kernel.forward) kernel.forward(trial, c.seed);
  if (kernel.backward) kernel.backward(trial, output, {.seed = c.seed});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string find_mistake(const BlockKernel& kernel, const Hunt& hunt) {
  const auto caught = [](const KernelCase& c, const auto& find) {
    try {
      return find();
    } catch (const std::exception& fault) {
      return c.text() + ": " + fault.what();
    }
  };
  for (std::uint64_t seed = 0; seed < hunt.seeds; ++seed) {
    for (const KernelCase& c : hunt.cases) {
      const std::string found = caught(c, [&] { return check(kernel, c, seed); });
      if (!found.empty()) return found;
    }
    for (const auto& [c, spoiler] : hunt.spoilt) {
      if (seed > 0) break;
      const std::string found = caught(c, [&] { return check_spoilt(kernel, c, spoiler, seed); });
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace ringlab
