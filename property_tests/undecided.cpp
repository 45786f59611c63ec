#include "property_tests/undecided.h"

#include <cmath>
#include <set>
#include <vector>

#include "reference/precise/double_double.h"

namespace ringlab::verify {
namespace {

/// The bound is computed in fp64 from the reference's numbers: it is not sharper than that, ...
constexpr double kBoundRounding = 0x1p-30;
/// ... and was added to the certified error, in whose last digits it may be lost.
constexpr double kSumRounding = 0x1p-52;

/// One tensor of a comparison.
struct ComparedTensor {
  const Tensor<double>& got;
  const Tensor<double>& exact;
  const Tensor<double>& error;
  const Tensor<double>& allowed;

  /// The subject's own bound.
  double own_bound(std::size_t i) const { return allowed.values()[i] - error.values()[i]; }
  double rounding(std::size_t i) const {
    return kBoundRounding * own_bound(i) + kSumRounding * allowed.values()[i];
  }
  bool is_undecided(std::size_t i) const {
    const double allowance = allowed.values()[i], certified = error.values()[i];
    if (!std::isfinite(allowance) || certified == 0) return false;
    const double off = std::abs(got.values()[i] - exact.values()[i]);
    return off <= allowance && off > own_bound(i) - certified;
  }
};

void find_rows(const ComparedTensor& tensor, std::set<std::int64_t>& slots) {
  const Extents& e = tensor.got.extents();
  for (std::size_t i = 0; i < tensor.got.values().size(); ++i) {
    if (!tensor.is_undecided(i)) continue;
    slots.insert(static_cast<std::int64_t>(i) / e.channels % e.tokens);
  }
}

Settlement judge(double off, double error, double bound, double rounding) {
  Settlement one{.undecided = 1};
  if (off + error <= bound - rounding) {
    one.right = 1;
  } else if (off - error > bound + rounding) {
    one.wrong = 1;
  } else {
    one.left = 1;
  }
  return one;
}

/// `truth` holds the rows of these slots.
Settlement settle_tensor(const ComparedTensor& tensor, const Tensor<DoubleDouble>& truth,
                         const std::vector<std::int64_t>& slots) {
  Settlement result;
  for_each_index(truth.extents(), [&](auto b, auto h, auto row, auto c) {
    const std::int64_t slot = slots[static_cast<std::size_t>(row)];
    const auto i = static_cast<std::size_t>(tensor.got.view().offset(b, h, slot, c));
    if (!tensor.is_undecided(i)) return;
    const DoubleDouble& x = truth(b, h, row, c);
    const double off = std::abs((tensor.got.values()[i] - x.high) - x.low);
    result.add(judge(off, x.error, tensor.own_bound(i), tensor.rounding(i)));
  });
  return result;
}

}  // namespace

void Settlement::add(const Settlement& other) {
  undecided += other.undecided;
  right += other.right;
  wrong += other.wrong;
  left += other.left;
}

Settlement settle_undecided(const AttentionInput& input, const AttentionOutput& got,
                            const ExactForward& exact, const ForwardTolerance& tolerance,
                            const ExactOptions& options) {
  const ComparedTensor out{got.out, exact.out, exact.out_error, tolerance.out};
  const ComparedTensor lse{got.lse, exact.lse, exact.lse_error, tolerance.lse};
  std::set<std::int64_t> found;
  find_rows(out, found);
  find_rows(lse, found);
  if (found.empty()) return {};
  const std::vector<std::int64_t> slots(found.begin(), found.end());
  PreciseOptions work{.rows = {}, .threads = options.threads, .progress = {}};
  for (const std::int64_t slot : slots) {
    work.rows.push_back(options.rows.empty() ? slot : options.rows[static_cast<std::size_t>(slot)]);
  }
  const DoubleDoubleForward truth = double_double_forward(input, work);
  Settlement result = settle_tensor(out, truth.out, slots);
  result.add(settle_tensor(lse, truth.lse, slots));
  return result;
}

}  // namespace ringlab::verify
