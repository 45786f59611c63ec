// The sizes that the rounds of a verification come to, printed before it begins.
#include <fmt/format.h>

#include "cli/line/text_table.h"
#include "cli/verify/verify.h"
#include "property_tests/generators/reach.h"

namespace ringlab::cli {
namespace {

struct ReachColumn {
  const char* title;  ///< a size, or the law whose sizes these are
  const char* name;   ///< in JSON
  std::int64_t (*value)(const verify::Reach&);
};
constexpr ReachColumn kColumns[] = {
    {"tokens", "tokens", [](const verify::Reach& reach) { return reach.tokens; }},
    {"channels", "channels", [](const verify::Reach& reach) { return reach.channels; }},
    {"heads/group", "heads_per_group", [](const verify::Reach& reach) { return reach.group; }},
    {"batch", "batch", [](const verify::Reach& reach) { return reach.batch; }},
    {"ranks", "ranks", [](const verify::Reach& reach) { return std::int64_t{reach.ranks}; }},
    {"many_tiles", "many_tiles_tokens",
     [](const verify::Reach& reach) { return reach.tile_tokens; }},
    {"every_row", "every_row_tokens", [](const verify::Reach& reach) { return reach.row_tokens; }},
    {"far_positions", "far_positions_keys",
     [](const verify::Reach& reach) { return reach.keys_before; }}};

bool comes_to(const VerifyPlan& plan, const verify::Reach& reach) {
  return reach.from_round < static_cast<std::uint64_t>(plan.rounds);
}

}  // namespace

std::string reach_text(const VerifyPlan& plan) {
  if (plan.rounds <= 1) return "";
  std::vector<Column> columns = {{"plan: from round", Align::right}};
  for (const ReachColumn& column : kColumns) columns.push_back({column.title, Align::right});
  TextTable table(columns);
  for (const verify::Reach& reach : verify::kReaches) {
    if (!comes_to(plan, reach)) continue;
    std::vector<std::string> cells = {fmt::format("{}", reach.from_round + 1)};
    for (const ReachColumn& column : kColumns) {
      cells.push_back(fmt::format("{}", column.value(reach)));
    }
    table.add(cells);
  }
  return table.text();
}

Json reach_json(const VerifyPlan& plan) {
  Json steps = Json::array();
  for (const verify::Reach& reach : verify::kReaches) {
    if (!comes_to(plan, reach)) continue;
    Json step = {{"from_round", reach.from_round + 1}};
    for (const ReachColumn& column : kColumns) step[column.name] = column.value(reach);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace ringlab::cli
