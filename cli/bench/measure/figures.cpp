#include "cli/bench/measure/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringlab::bench {
namespace {

/// Three digits that count, but whole numbers whole.
std::string figure_text(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (std::fabs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace

FigureTable figures_beside(const std::vector<Outcome>& outcomes) {
  FigureTable table;
  const bool has_subjects =
      std::ranges::any_of(outcomes, [](const Outcome& one) { return !one.subject.empty(); });
  if (has_subjects) table.names.push_back("by");
  for (const Outcome& outcome : outcomes) {
    for (const auto& [name, value] : outcome.beside) {
      if (!std::ranges::count(table.names, name)) table.names.push_back(name);
    }
  }
  for (const Outcome& outcome : outcomes) {
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
