#include "reference/core/options/near_word.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

namespace ringlab {
namespace {

struct Synonym {
  std::string_view theirs, ours;
};
constexpr std::array kSynonyms = std::to_array<Synonym>({
    {"fp64", "f64"},
    {"float64", "f64"},
    {"double", "f64"},
    {"fp32", "f32"},
    {"float32", "f32"},
    {"float", "f32"},
    {"single", "f32"},
    {"fp16", "f16"},
    {"float16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"bfloat", "bf16"},
    {"gpu", "cuda"},
    {"is_causal", "causal"},
    {"sliding", "window"},
    {"sliding_window", "window"},
    {"none", "full"},
    {"varlen", "documents"},
    {"oracle", "reference"},
    {"--seqlen", "--tokens"},
    {"exact", "reference"},
    {"engine", "optimized"},
    {"--seq-len", "--tokens"},
    {"--num-heads", "--heads"},
    {"--world-size", "--ranks"},
    {"--np", "--ranks"},
    {"--out", "--output"},
    {"--softmax-scale", "--scale"},
    {"check", "verify"},
    {"test", "verify"},
    {"benchmark", "bench"},
});

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string lower_case(std::string_view word) {
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::string nearest(std::string_view given, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // longer ones are no typos, and cost time
  if (given.empty() || given.size() > kLongestWord) return {};
  const std::string word = lower_case(given);
  for (const Synonym& synonym : kSynonyms) {
    const bool is_known = std::ranges::find(candidates, synonym.ours) != candidates.end();
    if (synonym.theirs == word && is_known) return std::string(synonym.ours);
  }
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : "Did you mean " + best + "?";
}

}  // namespace ringlab
