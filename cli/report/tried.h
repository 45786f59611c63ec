// The range of cases that a subject was tried on: as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "property_tests/coverage.h"

namespace ringlab::report {

/// "refused", "claimed_not_tried", and for each of "forward" and "gradients" the "calls" of the
/// cases that held, "sizes" by name as [least, greatest], and "kinds": how many calls of each word;
/// "pairs" of claims with those "not_met", and "as_used", the calls at sizes of models, and "open"
/// calls there, whose bounds were as wide as the answer.
nlohmann::ordered_json tried_json(const verify::Coverage& coverage);

/// "0 … 300", "7", or "-" where there was none.
std::string range_text(const verify::PassEnvelope& pass, const std::string& size);

/// "masks full, causal, causal+window; dtypes f32, …": everything but sizes.
std::string kinds_text(const verify::PassEnvelope& pass);

}  // namespace ringlab::report
