// Probes: inputs whose scores are integers, so that the answer is known without an oracle.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "property_tests/laws/findings.h"

namespace ringlab::verify {

/// Scores that are an integer times a unit, and the weight of a key that many units below the row's
/// maximum: 1 at 0.
struct IntegerScores {
  double unit = 1;  ///< score = unit · integer
  std::function<std::int64_t(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j)> at;
  std::function<long double(std::int64_t below)> weight;
};

/// The visible keys of one query row, by their integer scores.
struct RowWeights {
  std::vector<std::int64_t> keys;    // visible key positions
  std::vector<std::int64_t> below;   // how far below the maximum, in units
  std::vector<long double> weights;  // of each
  std::int64_t top = 0;
  std::int64_t largest = 0;  // largest |score|
  long double sum = 0;
};
RowWeights row_weights(const Pairs& visible, const IntegerScores& scores, std::int64_t b,
                       std::int64_t h, std::int64_t i);

/// The answer that a probe must get, and the sizes of each row that its tolerance needs.
struct ProbeAnswer {
  AttentionOutput expected;
  Tensor<double> keys;           ///< (b, h, i, 1): n
  Tensor<double> row_max;        ///< (b, h, i, 1): the largest score
  Tensor<double> largest_score;  ///< (b, h, i, 1): the largest |score|
  Tensor<double> magnitude;      ///< (b, h, i, c): Σ w |v| / Σ w
};
ProbeAnswer probe_answer(const Trial& trial, const IntegerScores& scores);

/// Integer scores of the integer tensors in the trial: q · k.
IntegerScores integer_scores(const Trial& trial, double unit);

/// Compares an answer whose weights are 0 and 1 and whose sums are exact in every format: only the
/// division, the logarithm and the output's rounding remain. |o - exact| <= half an ulp + 4u|o|.
LawResult exact_up_to_division(const Subject& subject, const Trial& trial,
                               const IntegerScores& scores);
/// exact_up_to_division() for scores that are not 0, where the subject's powers next to 0 are 1;
/// else its bounds: an exponential declared worse than a careful one need not give 1 there.
LawResult exact_where_powers_are(const Subject& subject, const Trial& trial,
                                 const IntegerScores& scores);

/// The check of probe Y.
LawResult dyadic_probe(const Subject& subject, const Case& c);
/// ln 2 as a kernel of this dtype sees it in its scale: as a float, or a double for f64.
double ln_2_as_scale(DType dtype);

/// Bits of a binary code for `tokens` tokens, at least 1.
std::int64_t code_bits(std::int64_t tokens);
/// shape_case of laws that use the codes: as many channels as bits.
Case code_channels(Case c);
/// Keys become ±1 codes of their position; queries become `strength` times the code of the key
/// target[b, h, i], or zeros for a negative target. The score of the target is then
/// strength · head_dim, and every other key is at least 2 · strength below. Sets scale 1.
Tensor<double> use_retrieval_codes(Trial& trial, double strength, std::uint64_t seed);
/// The values of the targets, and strength · head_dim as their lse; 0 and -inf without a target.
AttentionOutput retrieved(const Trial& trial, const Tensor<double>& target, double strength);
/// The errors of retrieved() values: value_errors() of the targets, and those of merging (out, lse)
/// pairs where that is declared.
Tensor<double> retrieved_errors(const Subject& subject, const Trial& trial,
                                const Tensor<double>& target, double strength);

}  // namespace ringlab::verify
