// The cases that hypotheses are held against: the failing one, and others made from it.
#pragma once

#include <vector>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

/// The failing case first, then larger and plainer ones that tell mistakes apart: other values,
/// lengths, masks, layouts, heads. Each of them is within what the subject can do.
std::vector<Case> evidence_cases(const Case& failing, const Capabilities& can);

/// Further cases, to confirm mistakes that explain evidence_cases(): the failing case with other
/// numbers and limits of its mask, half of them with other sizes.
std::vector<Case> confirming_cases(const Case& failing, const Capabilities& can);

/// A run of the subject on one case, next to the right answer.
struct Evidence {
  Case source;
  Scene scene;
  AttentionOutput got;
  Prediction truth;
  bool writes_inputs = false;
  bool wrong = false;  ///< the subject's answer is not within bounds of the truth
};
/// Runs the subject; empty where it throws, or gives outputs of other extents.
std::optional<Evidence> forward_evidence(const Subject& subject, const Case& c);

}  // namespace ringlab::verify
