// Trials, of which laws are made: the problem, options and tensors of one run, ways to change them,
// and the oracle's judgement of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/subject.h"
#include "reference/attention/exact.h"

namespace ringlab::verify {

struct Trial {
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  AttentionInput input() const { return data.input(problem); }
  const Shape& shape() const { return problem.shape; }
  std::int64_t group() const {
    return shape().q_heads / shape().kv_heads;
  }  ///< q heads per K/V head
};

Trial make_trial(const Case& c);

/// Runs the subject; an environment error when its outputs have other extents than the problem's.
RunResult run_checked(const Subject& subject, const AttentionInput& input,
                      const RunOptions& options);
RunResult run_trial(const Subject& subject, const Trial& trial);
/// The outputs of run_trial().
AttentionOutput attend(const Subject& subject, const Trial& trial);

/// The answer of the faster oracle where that will do, of the exact one for f64.
ExactForward sufficient_forward(const AttentionInput& input, const ExactOptions& options = {});

/// The oracle's answer and the tolerance of this subject's profile.
struct Judgement {
  ExactForward exact;
  ForwardTolerance allowed;
};
Judgement judge(const Subject& subject, const Trial& trial);
/// True when an output of zeros would pass: no row with a visible key has an |o| above its
/// tolerance. False when there is no such row, for then the empty rows are compared exactly.
bool zeros_would_pass(const Judgement& judgement);

/// The error that each number of V may have where a kernel multiplies it, (batch, kv_heads, tokens,
/// v_dim): the wire_error() of this subject's profile, its rounding, and all of it where products
/// underflow. Else zeros where values travel exactly.
Tensor<double> value_errors(const Subject& subject, const Trial& trial);

/// The error that merging (out, lse) pairs, and partial outputs stored in a coarser type, may bring
/// to an output that is one value of V, for rows whose scores are at most `largest_score` in size:
/// in the extents of V, zeros for subjects that declare neither.
Tensor<double> merging_errors(const Subject& subject, const Trial& trial, double largest_score);

/// The mask as a plain matrix: which (query, key) pairs are visible.
struct Pairs {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::vector<std::uint8_t> bits;  // (queries, keys)
  bool operator()(std::int64_t i, std::int64_t j) const {
    return bits[static_cast<std::size_t>(i * keys + j)] != 0;
  }
  std::int64_t count(std::int64_t i) const;  ///< keys that query i sees
};
Pairs visible_pairs(const Problem& problem);
Pairs make_pairs(std::int64_t queries, std::int64_t keys,
                 const std::function<bool(std::int64_t, std::int64_t)>& visible);
/// Replaces the mask by this matrix, and the token counts by its extents.
void use_pairs(Problem& problem, const Pairs& pairs);
/// scale · q_i · k_j.
double score(const Trial& trial, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

using Indices = std::vector<std::int64_t>;
/// 0 … count-1 in a seeded order.
Indices shuffled(std::int64_t count, std::uint64_t seed);
/// Token (head, channel) t of the result is token (head, channel) from[t] of x.
Tensor<double> pick_tokens(const Tensor<double>& x, const Indices& from);
Tensor<double> pick_heads(const Tensor<double>& x, const Indices& from);
Tensor<double> pick_channels(const Tensor<double>& x, const Indices& from);
Tensor<double> pick_batches(const Tensor<double>& x, const Indices& from);

/// The trial with key t of the new set being key from[t] of the old, in K, V and the mask.
Trial with_keys(const Trial& trial, const Indices& from);
/// 0 … count-1 in order.
Indices in_order(std::int64_t count);

/// x with every element replaced by value(x, b, h, t, c).
using ElementMap =
    std::function<double(double, std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;
Tensor<double> mapped(const Tensor<double>& x, const ElementMap& value);
/// x with one channel set to value(b, h, t).
using ChannelMap = std::function<double(std::int64_t, std::int64_t, std::int64_t)>;
Tensor<double> with_channel(const Tensor<double>& x, std::int64_t channel, const ChannelMap& value);
Tensor<double> scaled(const Tensor<double>& x, double factor);
/// x + y, element by element.
Tensor<double> added(const Tensor<double>& x, const Tensor<double>& y);
/// Integers in [-limit, limit], seeded, in the extents given.
Tensor<double> random_integers(const Extents& extents, std::int64_t limit, std::uint64_t seed);

}  // namespace ringlab::verify
