#include "reference/attention/fast_error.h"

#include <algorithm>
#include <cmath>

#include "reference/attention/compensated.h"
#include "reference/attention/fast_kernel.h"
#include "reference/core/numerics.h"

namespace ringlab::fast {
namespace {

constexpr double kOutwards = 1 + 0x1p-30;  // covers the roundings of the bounds themselves
constexpr double kLog2EUp = 0x1.71547652b82ffp+0, kLn2Up = 0x1.62e42fefa39f0p-1;  // both rounded up
constexpr double kFlushed = 0x1p-1019;
/// Taken for the 2^-1074 that an operation loses when it underflows: still nothing beside the least
/// number of f32, and what is f64 is checked by exact_forward. Products that are subnormal cost some
/// processors 150 cycles, which was a third of the time of short sequences.
constexpr double kLost = 0x1p-1000;

/// The part of a score that products lose to underflow.
double score_underflow(std::int64_t head_dim, double key_norm) {
  const double d = static_cast<double>(head_dim);
  return (std::sqrt(d) * key_norm + d + 1) * kLost * 2 + kLost;
}

double score_rounding(std::int64_t head_dim) {
  return gamma_bound(static_cast<double>(head_dim) + 8, kUnitRoundoff);
}

/// E of fast_error.h.
double exponent_error(const RowTerms& t) {
  const double size = kLog2EUp * t.scale * t.query_norm * t.key_norm * kOutwards;
  const double computed = score_bound(t.head_dim, t.scale, t.query_norm, t.key_norm);
  const double score = score_rounding(t.head_dim) * size + 4 * kUnitRoundoff * computed +
                       score_underflow(t.head_dim, t.key_norm);
  const double powers = static_cast<double>(t.rescales + 1) * kPowerError;
  return (kLn2Up * score + powers) * kOutwards;
}

}  // namespace

double norm_bound(double sum_of_squares, std::int64_t channels) {
  const double d = static_cast<double>(channels);
  const double most = (sum_of_squares + 4 * d * kLost) * (1 + (2 * d + 8) * kUnitRoundoff);
  return std::sqrt(most) * kOutwards;
}

double score_bound(std::int64_t head_dim, double scale, double query_norm, double key_norm) {
  const double size = kLog2EUp * scale * query_norm * key_norm;
  return size * (1 + score_rounding(head_dim)) * kOutwards + score_underflow(head_dim, key_norm);
}

RowError row_error(const RowTerms& t) {
  const double e = exponent_error(t);
  const double weights = std::min(1.0, std::exp(e) * std::expm1(e));
  const double keys = static_cast<double>(t.keys);
  const double chain = static_cast<double>(kBlockKeys + 2 * t.blocks + 4);
  const double gamma = gamma_bound(chain, kUnitRoundoff);
  const double sums = gamma / (1 - gamma);
  const double flushed = keys * kFlushed / t.row_sum;
  const double underflow = (4 * keys + 16) * kLost / t.row_sum;
  const double log_sum = std::log(t.row_sum);
  const double shift = t.row_max * kLn2Up;
  RowError error;
  error.largest_share = (2 * weights + 2 * sums + 4 * flushed + 2 * underflow) * kOutwards;
  error.absolute = 2 * underflow + 4 * kLost;
  error.lse = (e + sums + 4 * flushed + 4 * underflow +
               2 * kUnitRoundoff * (std::abs(shift) + std::abs(log_sum) + std::abs(t.lse))) *
                  kOutwards +
              4 * kLost;
  return error;
}

}  // namespace ringlab::fast
