// U, Y, S, R: probes that need no oracle.
//
// Weights of 0 and 1 are exact for a kernel that scales after the dot product and calls the natural
// exp: hence U, S and R. Y is in dyadic_probe.cpp.
#include "property_tests/laws/probes.h"

#include <algorithm>
#include <cmath>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

/// Gap between scores whose weight must underflow to 0 in f64 too: exp(-1024) < 2^-1075.
constexpr double kHugeGap = 1024;

long double only_the_maximum(std::int64_t below) { return below == 0 ? 1.0L : 0.0L; }

/// Holds because equal scores give equal weights. Finds every key that is lost, doubled or not
/// hidden, as an error of 1/n instead of one near the tolerance.
LawResult uniform(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  trial.data.q = Tensor<double>(trial.shape().q());
  trial.data.v = random_integers(trial.shape().v(), 8, c.seed);
  return exact_up_to_division(
      subject, trial, {.unit = 1, .at = [](auto...) { return 0; }, .weight = only_the_maximum});
}

/// Gives keys levels, per channel: rising, falling, then random ones, 16 at most, so that even a
/// wire of e4m3 carries them exactly. Each query reads one channel.
/// Holds because all but the top level underflow to 0. Finds accumulators that are not rescaled
/// when a later block raises the maximum, whatever the order in which blocks come.
LawResult subset(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  trial.problem.scale = 1;
  trial.data.v = random_integers(trial.shape().v(), 8, c.seed);
  const std::int64_t stretch = std::max<std::int64_t>(3, (c.shape.kv_tokens + 15) / 16);
  trial.data.k = mapped(trial.data.k, [&](double, auto b, auto g, auto j, auto channel) {
    const std::int64_t rising = j / stretch, falling = (c.shape.kv_tokens - j) / stretch;
    if (channel == 0) return static_cast<double>(rising);
    if (channel == 1) return static_cast<double>(falling);
    return static_cast<double>(Draws(c.seed, {b, g, j, channel}).below(2));
  });
  trial.data.q = mapped(trial.data.q, [&](double, auto b, auto h, auto i, auto channel) {
    return Draws(c.seed, {b, h, i}).below(c.shape.head_dim) == channel ? kHugeGap : 0.0;
  });
  IntegerScores scores = integer_scores(trial, 1);
  scores.weight = only_the_maximum;
  return exact_where_powers_are(subject, trial, scores);
}

/// Holds because one weight is 1 and all others are 0. Finds values that travel through a narrower
/// type, and keys matched with the values of another token.
LawResult retrieval(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  const Tensor<double> target = use_retrieval_codes(trial, kHugeGap, c.seed);
  const AttentionOutput got = attend(subject, trial);
  const AttentionOutput expected = retrieved(trial, target, kHugeGap);
  // The score is exact; factors that take it to another base, and back, need not be.
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const auto lse = mapped(expected.lse, [&](double exact, auto...) {
    if (std::isinf(exact)) return 0.0;
    return 4 * (profile.u_accumulate + profile.u_lse) * std::abs(exact) +
           merge_error(profile, std::abs(exact), trial.shape().kv_tokens);
  });
  const auto out = retrieved_errors(subject, trial, target, kHugeGap);
  return both(matches("o", got.out, expected.out, out), matches("lse", got.lse, expected.lse, lse));
}

}  // namespace

std::vector<Law> probe_laws() {
  return {
      {.id = "U",
       .name = "equal_scores_give_the_mean_of_the_visible_values",
       .statement = "with Q = 0 and integer V, O is the mean of the visible values and lse = ln n",
       .exact = true,
       .shape_case = plain_values,
       .check = uniform},
      {.id = "Y",
       .name = "dyadic_scores_give_power_of_two_weights",
       .statement =
           "with scale ln 2 and integer scores every weight is a power of two, so a missed "
           "or doubled rescale is off by a factor of two",
       .shape_case = plain_values,
       .check = dyadic_probe},
      {.id = "S",
       .name = "keys_far_below_the_maximum_have_no_weight_at_all",
       .statement =
           "with gaps of 1024 nats O is the mean over the keys at the maximum: every stale "
           "block would show",
       .exact = true,
       .shape_case = plain_values,
       .check = subset},
      {.id = "R",
       .name = "a_query_that_matches_one_key_returns_its_value",
       .statement =
           "O_i equals V of the matching key bit for bit, as it arrives, and lse its score but "
           "for a rounding",
       .exact = true,
       .shape_case = code_channels,
       .check = retrieval}};
}

}  // namespace ringlab::verify
