// The known answers of probes, and the inputs that codes make.
#include <bit>
#include <cmath>
#include <limits>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/probes.h"

namespace ringlab::verify {

RowWeights row_weights(const Pairs& visible, const IntegerScores& scores, std::int64_t b,
                       std::int64_t h, std::int64_t i) {
  RowWeights row;
  for (std::int64_t j = 0; j < visible.keys; ++j) {
    if (!visible(i, j)) continue;
    const std::int64_t score = scores.at(b, h, i, j);
    // The first visible key sets the maximum, for scores may all be negative.
    row.top = row.keys.empty() ? score : std::max(row.top, score);
    row.largest = std::max(row.largest, std::abs(score));
    row.keys.push_back(j);
    row.below.push_back(score);
  }
  // Turns scores into whole distances below the maximum, which weights are made of.
  for (std::int64_t& score : row.below) {
    score = row.top - score;
    row.weights.push_back(scores.weight(score));
    row.sum += row.weights.back();
  }
  return row;
}

ProbeAnswer probe_answer(const Trial& trial, const IntegerScores& scores) {
  const Shape& shape = trial.shape();
  const Pairs visible = visible_pairs(trial.problem);
  ProbeAnswer answer{.expected = {Tensor<double>(shape.out()), Tensor<double>(shape.lse())},
                     .keys = Tensor<double>(shape.lse()),
                     .row_max = Tensor<double>(shape.lse()),
                     .largest_score = Tensor<double>(shape.lse()),
                     .magnitude = Tensor<double>(shape.out())};
  for_each_index(shape.lse(), [&](auto b, auto h, auto i, auto) {
    answer.expected.lse(b, h, i, 0) = -std::numeric_limits<double>::infinity();
    const RowWeights row = row_weights(visible, scores, b, h, i);
    answer.keys(b, h, i, 0) = static_cast<double>(row.keys.size());
    if (row.keys.empty()) return;
    answer.row_max(b, h, i, 0) = scores.unit * static_cast<double>(row.top);
    answer.largest_score(b, h, i, 0) = scores.unit * static_cast<double>(row.largest);
    answer.expected.lse(b, h, i, 0) =
        // Long double keeps the answer's own rounding far below what is allowed.
        static_cast<double>(static_cast<long double>(scores.unit) * row.top + std::log(row.sum));
    for (std::int64_t c = 0; c < shape.v_dim; ++c) {
      long double out = 0;
      long double magnitude = 0;
      for (std::size_t k = 0; k < row.keys.size(); ++k) {
        const double v = trial.data.v(b, h / trial.group(), row.keys[k], c);
        out += row.weights[k] * v;
        magnitude += row.weights[k] * std::abs(v);
      }
      answer.expected.out(b, h, i, c) = static_cast<double>(out / row.sum);
      answer.magnitude(b, h, i, c) = static_cast<double>(magnitude / row.sum);
    }
  });
  return answer;
}

IntegerScores integer_scores(const Trial& trial, double unit) {
  const auto at = [&trial](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    std::int64_t dot = 0;
    for (std::int64_t c = 0; c < trial.shape().head_dim; ++c) {
      // Small whole numbers: products and sums are exact.
      dot += static_cast<std::int64_t>(trial.data.q(b, h, i, c) *
                                       trial.data.k(b, h / trial.group(), j, c));
    }
    return dot;
  };
  return {.unit = unit, .at = at, .weight = {}};
}

namespace {

/// The error of weights that are divided before they meet V: their division, their type, and the
/// sum of products that are no longer exact.
double early_division(const NumericsProfile& profile, double keys) {
  return gamma_bound(keys + 3, profile.u_accumulate) + profile.u_probability;
}

/// The error that merging (out, lse) pairs adds to every weight of a row, and to its lse.
double merging(const NumericsProfile& profile, const ProbeAnswer& answer, std::int64_t b,
               std::int64_t h, std::int64_t i) {
  return merge_error(profile, answer.largest_score(b, h, i, 0),
                     static_cast<std::int64_t>(answer.keys(b, h, i, 0)));
}

}  // namespace

LawResult exact_up_to_division(const Subject& subject, const Trial& trial,
                               const IntegerScores& scores) {
  const ProbeAnswer answer = probe_answer(trial, scores);
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const double u = profile.u_accumulate;
  const double partial = profile.u_partial * static_cast<double>(profile.max_rescales + 1);
  const auto out = mapped(answer.expected.out, [&](double o, auto b, auto h, auto i, auto channel) {
    const double early = subject.can.has(Ability::divides_last)
                             ? 0.0
                             : early_division(profile, answer.keys(b, h, i, 0));
    const double weights =
        partial + early + factor_error(profile) + merging(profile, answer, b, h, i);
    // A few roundings of the division, and all that may disturb weights of whole numbers.
    const double error = 4 * u * std::abs(o) + weights * answer.magnitude(b, h, i, channel);
    const double rounding = half_ulp(profile.out_dtype, std::abs(o) + error);
    return error == 0 ? 0.0 : error + rounding;  // exact inputs, exact answer: no bit may differ
  });
  const auto lse = mapped(answer.expected.lse, [&](double exact, auto b, auto h, auto i, auto) {
    if (answer.keys(b, h, i, 0) == 0) return 0.0;
    const double top = answer.row_max(b, h, i, 0);
    return 4 * (u + profile.u_lse) * (2 * std::abs(top) + std::abs(exact - top) + std::abs(exact)) +
           merging(profile, answer, b, h, i);
  });
  const AttentionOutput got = attend(subject, trial);
  return both(matches("o", got.out, answer.expected.out, out),
              matches("lse", got.lse, answer.expected.lse, lse));
}

LawResult exact_where_powers_are(const Subject& subject, const Trial& trial,
                                 const IntegerScores& scores) {
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const bool is_careful = profile.exp_error <= 4 * profile.u_accumulate;
  if (subject.can.has(Ability::powers_next_to_0_are_1) && is_careful) {
    return exact_up_to_division(subject, trial, scores);
  }
  return equals_exact(measure(subject, trial));
}

double ln_2_as_scale(DType dtype) {
  const double ln2 = std::log(2.0);
  // The scale of a kernel in f32 is the float nearest to ln 2.
  return dtype == DType::f64 ? ln2 : static_cast<double>(static_cast<float>(ln2));
}

std::int64_t code_bits(std::int64_t tokens) {
  return std::max<std::int64_t>(
      1, std::bit_width(static_cast<std::uint64_t>(tokens < 1 ? 0 : tokens - 1)));
}

Case code_channels(Case c) {
  c.shape.head_dim = code_bits(c.shape.kv_tokens);
  return c;
}

Tensor<double> use_retrieval_codes(Trial& trial, double strength, std::uint64_t seed) {
  const auto code = [](std::int64_t j, std::int64_t bit) {
    // A key's number in binary, as ±1: the product of two codes is head_dim only where they agree.
    return bit < 63 && (j >> bit & 1) != 0 ? 1.0 : -1.0;
  };
  const Pairs visible = visible_pairs(trial.problem);
  Tensor<double> target(trial.shape().lse());
  target = mapped(target, [&](double, auto b, auto h, auto i, auto) {
    const std::int64_t count = visible.count(i);
    // The target is a random key among the visible ones; -1 where the query sees none.
    std::int64_t left = Draws(seed, {b, h, i}).below(count);
    std::int64_t j = count == 0 ? -1 : 0;
    while (count > 0 && (!visible(i, j) || left-- > 0)) ++j;
    return static_cast<double>(j);
  });
  trial.problem.scale = 1;
  trial.data.k =
      mapped(trial.data.k, [&](double, auto, auto, auto j, auto bit) { return code(j, bit); });
  trial.data.q = mapped(trial.data.q, [&](double, auto b, auto h, auto i, auto bit) {
    const auto j = static_cast<std::int64_t>(target(b, h, i, 0));
    return j < 0 ? 0.0 : strength * code(j, bit);
  });
  return target;
}

AttentionOutput retrieved(const Trial& trial, const Tensor<double>& target, double strength) {
  AttentionOutput expected{Tensor<double>(trial.shape().out()),
                           Tensor<double>(trial.shape().lse())};
  const auto wanted = [&](auto b, auto h, auto i) {
    return static_cast<std::int64_t>(target(b, h, i, 0));
  };
  expected.out = mapped(expected.out, [&](double, auto b, auto h, auto i, auto channel) {
    const std::int64_t j = wanted(b, h, i);
    return j < 0 ? 0.0 : trial.data.v(b, h / trial.group(), j, channel);
  });
  expected.lse = mapped(expected.lse, [&](double, auto b, auto h, auto i, auto) {
    return wanted(b, h, i) < 0 ? -std::numeric_limits<double>::infinity()
                               : strength * static_cast<double>(trial.shape().head_dim);
  });
  return expected;
}

Tensor<double> retrieved_errors(const Subject& subject, const Trial& trial,
                                const Tensor<double>& target, double strength) {
  Trial errors = trial;
  const double score = strength * static_cast<double>(trial.shape().head_dim);
  errors.data.v =
      added(value_errors(subject, trial), merging_errors(subject, trial, std::abs(score)));
  // With the errors in place of values, retrieved() gives the errors of the targets.
  return retrieved(errors, target, 0).out;
}

}  // namespace ringlab::verify
