// Probe T: with slices of the identity as values, the output is the softmax matrix itself.
#pragma once

#include <string>
#include <vector>

#include "property_tests/laws/trial.h"

namespace ringlab::verify {

/// A softmax matrix read out of a black box, next to the exact one.
struct Tomography {
  Trial trial;
  Tensor<double> got, exact;          ///< (batch, q_heads, queries, keys)
  std::vector<std::string> findings;  ///< the keys with wrong weights, as sentences
};

/// kv_tokens / v_dim runs of the subject. Scale, mask and modifiers are those of the trial; its
/// values are not used.
Tomography read_softmax(const Subject& subject, const Trial& trial);

/// One head as characters, at most `most` rows and columns: "=" right, "-" and "+" too little and
/// too much, "0" lost, "!" weight where there must be none, "?" no number, " " hidden.
std::string softmax_picture(const Tomography& tomography, std::int64_t batch, std::int64_t head,
                            std::int64_t most);
/// The character of one pair.
char softmax_mark(double got, double exact);

}  // namespace ringlab::verify
