#include "optimized/bench/measure/goal.h"

#include <fmt/format.h>

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

/// Three significant digits, but all digits of whole numbers.
std::string figure_text(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (std::fabs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
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

GoalVerdict GoalOutcome::verdict() const {
  if (!value) return GoalVerdict::skipped;
  const double reached = value->median;
  if (!std::isfinite(reached)) return GoalVerdict::missed;
  const auto is_met = [&](double limit) {
    return goal.sense == Sense::at_least ? reached >= limit : reached <= limit;
  };
  if (is_met(goal.target)) return GoalVerdict::target;
  return is_met(goal.bound) ? GoalVerdict::bound : GoalVerdict::missed;
}

std::string verdict_text(const GoalOutcome& outcome) {
  switch (outcome.verdict()) {
    case GoalVerdict::target:
      return "target";
    case GoalVerdict::bound:
      return outcome.goal.sense == Sense::at_least ? "at least" : "at most";
    case GoalVerdict::missed:
      return "missed";
    default:
      return "skipped";
  }
}

FigureTable figures_beside(const std::vector<GoalOutcome>& outcomes) {
  FigureTable table;
  const bool has_subjects =
      std::ranges::any_of(outcomes, [](const GoalOutcome& one) { return !one.subject.empty(); });
  if (has_subjects) table.names.push_back("by");
  for (const GoalOutcome& outcome : outcomes) {
    for (const auto& [name, value] : outcome.beside) {
      if (!std::ranges::count(table.names, name)) table.names.push_back(name);
    }
  }
  for (const GoalOutcome& outcome : outcomes) {
    if (outcome.beside.empty()) continue;
    FigureTable::Row row{outcome.goal.id, std::vector<std::string>(table.names.size())};
    if (has_subjects) row.cells[0] = outcome.subject;
    for (const auto& [name, value] : outcome.beside) {
      const auto column = std::ranges::find(table.names, name) - table.names.begin();
      row.cells[static_cast<std::size_t>(column)] = figure_text(value.median);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace ringlab::bench
