// Suggests what a mistyped word was meant to be.
#pragma once

#include <string>
#include <vector>

namespace ringlab::cli {

/// The candidate with the least edit distance, or empty when none is near enough to be a typo.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// "Did you mean X?", or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace ringlab::cli
