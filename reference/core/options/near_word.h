// Suggestions for mistyped words, and for the field's words that have another name here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlab {

/// Our word for the field's ("fp16": f16) where it is among the candidates, else the candidate with
/// the least edit distance; empty when none is near enough to be a typo.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "Did you mean X?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ringlab
