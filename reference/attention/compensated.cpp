#include "reference/attention/compensated.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringlab {
namespace {

constexpr std::int64_t kLanes = 8;  // independent sums, so that the loop vectorises

struct SumLanes {
  std::array<double, kLanes> high{}, low{}, magnitude{};

  /// Two-sum (Knuth; Neumaier 1974): what `high` loses goes to `low`.
  template <bool kExactProducts>
  void add_product(std::size_t lane, double x, double y) {
    const double product = x * y;
    DoubleSum sum{high[lane], low[lane]};
    sum.add(product);
    high[lane] = sum.high;
    low[lane] = sum.low;
    // The product's own rounding, exactly; products of floats are exact in double.
    if constexpr (!kExactProducts) low[lane] += std::fma(x, y, -product);
    magnitude[lane] += std::abs(product);
  }
};

template <bool kExactProducts>
Dot dot_in_lanes(const double* x, const double* y, std::int64_t count) {
  SumLanes lanes;
  std::int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes.add_product<kExactProducts>(static_cast<std::size_t>(lane), x[c + lane], y[c + lane]);
    }
  }
  // The remainder of fewer than kLanes products: one in each of the first lanes.
  for (std::size_t lane = 0; c < count; ++c, ++lane) {
    lanes.add_product<kExactProducts>(lane, x[c], y[c]);
  }
  DoubleSum total;
  Dot result;
  // Lanes of short vectors that nothing was added to are left out: they are zero.
  const auto used = static_cast<std::size_t>(std::min(count, kLanes));
  for (std::size_t lane = 0; lane < used; ++lane) {
    total.add(lanes.high[lane]);
    total.low += lanes.low[lane];
    result.magnitude += lanes.magnitude[lane];
  }
  result.value = total.value();
  return result;
}

}  // namespace

double compensated_rounding(std::int64_t count) {
  // 2 count + 16: the lost parts of products and sums, and the joining of the lanes.
  const double gamma = (2.0 * static_cast<double>(count) + 16.0) * kUnitRoundoff;
  return 2 * gamma * gamma;
}

double Dot::error(std::int64_t count) const {
  return (kUnitRoundoff * std::abs(value) + compensated_rounding(count) * magnitude) *
             (1 + 0x1p-40) +
         underflow_of(4 * count);
}

Dot dot(const double* x, const double* y, std::int64_t count, bool exact_products) {
  return exact_products ? dot_in_lanes<true>(x, y, count) : dot_in_lanes<false>(x, y, count);
}

bool fits_float(const TensorView<const double>& tensor) {
  bool fits = true;
  for_each_index(
      tensor.extents, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
        const double x = tensor(b, h, t, c);
        // NaN fits: it may stand where nothing is visible, and must not turn exact products off.
        fits = fits && (std::isnan(x) || static_cast<double>(static_cast<float>(x)) == x);
      });
  return fits;
}

BoundedSums::BoundedSums(std::int64_t count, std::int64_t terms)
    : rounding_(kUnitRoundoff + compensated_rounding(terms)),
      high_(static_cast<std::size_t>(count)),
      low_(high_.size()),
      error_(high_.size()) {}

void BoundedSums::add(double factor, double factor_error, const double* values) {
  added_ += 1;
  const double wrong = factor_error + rounding_ * std::abs(factor);
  const std::size_t count = high_.size();
  double* high = high_.data();
  double* low = low_.data();
  double* error = error_.data();
  for (std::size_t c = 0; c < count; ++c) {
    DoubleSum sum{high[c], low[c]};
    // Rounded products: their error is in `wrong`, not in `low`.
    sum.add(factor * values[c]);
    high[c] = sum.high;
    low[c] = sum.low;
    error[c] += wrong * std::abs(values[c]);
  }
}

double BoundedSums::value(std::int64_t c) const {
  return high_[static_cast<std::size_t>(c)] + low_[static_cast<std::size_t>(c)];
}

double BoundedSums::error(std::int64_t c) const {
  // The last factor: this bound is itself a plain sum.
  return (error_[static_cast<std::size_t>(c)] + kUnitRoundoff * std::abs(value(c))) *
             (1 + (2 * added_ + 16) * kUnitRoundoff) +
         underflow_of(2 * static_cast<std::int64_t>(added_));
}

void BoundedSums::clear() {
  added_ = 0;
  for (std::vector<double>* part : {&high_, &low_, &error_}) {
    std::fill(part->begin(), part->end(), 0.0);
  }
}

const double* channels_of(const TensorView<const double>& tensor, std::int64_t batch,
                          std::int64_t head, std::int64_t token, std::vector<double>& buffer) {
  if (tensor.strides.channel == 1) return &tensor(batch, head, token, 0);  // read in place
  buffer.resize(static_cast<std::size_t>(tensor.extents.channels));
  for (std::size_t c = 0; c < buffer.size(); ++c) {
    buffer[c] = tensor(batch, head, token, static_cast<std::int64_t>(c));
  }
  return buffer.data();
}

}  // namespace ringlab
