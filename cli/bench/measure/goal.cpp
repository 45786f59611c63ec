#include "cli/bench/measure/goal.h"

#include <algorithm>
#include <cmath>

#include "cli/line/words.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

bool names(const std::string& word, const Goal& goal) {
  return goal.id == word || goal.id.starts_with(word + ".");
}

std::string known_families(const std::vector<Goal>& all) {
  std::string known;
  for (const Goal& goal : all) {
    const std::string family = family_of(goal);
    if (known != family && !known.ends_with(" " + family)) {
      known += (known.empty() ? "" : ", ") + family;
    }
  }
  return known;
}

}  // namespace

std::string family_of(const Goal& goal) { return goal.id.substr(0, goal.id.find('.')); }

std::vector<Goal> choose_goals(const std::string& words, const std::vector<Goal>& all) {
  const std::vector<std::string> parts = cli::words_between_commas(words);
  for (const std::string& word : parts) {
    const auto is_named = [&](const Goal& goal) { return names(word, goal); };
    if (std::ranges::any_of(all, is_named)) continue;
    throw_usage_error({.where = "--only",
                       .expected = "goals of " + known_families(all) + ", or one by its whole id",
                       .actual = "'" + word + "'",
                       .hint = "Example: --only " + family_of(all.front())});
  }
  std::vector<Goal> chosen;
  for (const Goal& goal : all) {
    const auto names_it = [&](const std::string& word) { return names(word, goal); };
    if (std::ranges::any_of(parts, names_it)) chosen.push_back(goal);
  }
  return chosen;
}

Verdict Outcome::verdict() const {
  if (!value) return Verdict::skipped;
  const double reached = value->median;
  if (!std::isfinite(reached)) return Verdict::missed;
  const auto is_met = [&](double limit) {
    return goal.sense == Sense::at_least ? reached >= limit : reached <= limit;
  };
  if (is_met(goal.target)) return Verdict::target;
  return is_met(goal.bound) ? Verdict::bound : Verdict::missed;
}

std::string verdict_text(const Outcome& outcome) {
  switch (outcome.verdict()) {
    case Verdict::target:
      return "target";
    case Verdict::bound:
      return outcome.goal.sense == Sense::at_least ? "at least" : "at most";
    case Verdict::missed:
      return "missed";
    default:
      return "skipped";
  }
}

}  // namespace ringlab::bench
