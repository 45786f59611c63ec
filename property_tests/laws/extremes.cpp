// Values at the ends of their type: the largest finite numbers, and those below the normal range.
#include <algorithm>
#include <cmath>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/trial.h"

namespace ringlab::verify {
namespace {

/// Σ |v| of one channel: what the accumulator of a kernel that divides last may reach.
double channel_size(const Trial& trial, std::int64_t b, std::int64_t g, std::int64_t c) {
  double size = 0;
  for (std::int64_t j = 0; j < trial.shape().kv_tokens; ++j) {
    size += std::abs(trial.data.v(b, g, j, c));
  }
  return size;
}

/// A share of the largest number that the three bits of the narrowest wire round beyond it.
constexpr double kNextToLargest = 0.98;

/// The largest value that V gets. In f64 sums of all keys must not pass it: the reference has to
/// stay finite, too.
double largest_value(const Case& c) {
  const double largest = dtype_info(c.dtype).max_finite;
  if (c.dtype != DType::f64) return largest;
  return std::ldexp(largest, -8 - std::ilogb(static_cast<double>(c.shape.kv_tokens + 1)));
}

/// One value per channel that a lossy wire may round beyond the largest number, and zeros beside
/// it, so that no sum can overflow.
Tensor<double> lone_values(const Trial& trial, double largest, std::uint64_t seed) {
  const std::int64_t keys = trial.shape().kv_tokens;
  return mapped(trial.data.v, [&](double, auto b, auto g, auto j, auto channel) {
    Draws draws(seed, {b, g, channel});
    const double sign = draws.sign();
    return j == draws.between(0, keys - 1) ? sign * kNextToLargest * largest : 0;
  });
}

/// Many values as large as can be, of one sign per channel, so that two sums which have both
/// overflowed do not cancel.
Tensor<double> many_values(const Trial& trial, double largest, std::uint64_t seed) {
  return mapped(trial.data.v, [&](double x, auto b, auto g, auto j, auto channel) {
    const double sign = Draws(seed, {b, g, channel}).sign();
    const bool is_largest = Draws(seed, {b, g, j, channel}).chance(30);
    return sign * (is_largest ? largest : std::abs(x));
  });
}

/// Holds because equal scores leave a plain mean: what is out of range is the accumulator alone.
/// Finds NaN from inf - inf or 0 · inf when a running output that overflowed is rescaled.
LawResult largest_values(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const bool is_lossy = !travels_exactly(profile);
  const double largest = std::min(largest_value(c), profile.wire_max);
  trial.data.q = Tensor<double>(trial.shape().q());  // equal scores: no weight is 0
  trial.data.v =
      is_lossy ? lone_values(trial, largest, c.seed) : many_values(trial, largest, c.seed);
  const AttentionOutput got = attend(subject, trial);
  const Judgement truth = judge(subject, trial);
  LawResult result = matches("lse", got.lse, truth.exact.lse, truth.allowed.lse);
  for_each_index(trial.shape().out(), [&](auto b, auto h, auto i, auto channel) {
    const double o = got.out(b, h, i, channel);
    const bool may_overflow =
        !is_lossy && channel_size(trial, b, h / trial.group(), channel) > profile.max_finite / 2;
    const double error = std::abs(o - truth.exact.out(b, h, i, channel));
    const bool right = error <= truth.allowed.out(b, h, i, channel) && !(is_lossy && std::isinf(o));
    if (right || (may_overflow && std::isinf(o)) || result.outcome == Outcome::broken) return;
    result =
        broken("o(" + std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(i) +
               ", " + std::to_string(channel) + "): got " + std::to_string(o) +
               (is_lossy ? ", and nothing overflows" : ", which is neither right nor an overflow"));
  });
  return result;
}

/// Holds because the mean of subnormals of one sign is no smaller than the least of them. Finds
/// processors and compilers left in flush-to-zero mode without the profile saying so.
LawResult values_below_the_normal_range(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  const DTypeInfo& info = dtype_info(c.dtype);
  const std::int64_t steps = static_cast<std::int64_t>(info.min_normal / info.min_subnormal) - 1;
  trial.data.q = Tensor<double>(trial.shape().q());
  trial.data.v = mapped(trial.data.v, [&](double, auto b, auto g, auto j, auto channel) {
    Draws draws(c.seed, {b, g, j, channel, 80});  // one sign: the mean is no smaller than they are
    return static_cast<double>(draws.between(steps / 2, steps)) * info.min_subnormal;
  });
  return equals_exact(measure(subject, trial));
}

}  // namespace

std::vector<Law> extreme_laws() {
  return {{.id = "P79",
           .name = "values_at_the_largest_number_give_the_answer_or_an_infinity",
           .statement = "With equal scores and values of ±max, one sign per channel, O is right; "
                        "where their sum may overflow it may be infinite, and it is never NaN. "
                        "One value next to ±max that a lossy wire rounds up leaves O finite.",
           .shape_case = plain_values,
           .needs = {Ability::divides_last},
           .check = largest_values},
          {.id = "P80",
           .name = "values_below_the_normal_range_are_not_read_as_zero",
           .statement = "Subnormal values give their mean, unless the profile declares that "
                        "products are flushed.",
           .shape_case = plain_values,
           .check = values_below_the_normal_range}};
}

}  // namespace ringlab::verify
