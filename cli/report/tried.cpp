#include "cli/report/tried.h"

#include <fmt/format.h>

#include <utility>

#include "cli/line/text_table.h"

namespace ringlab::report {
namespace {

using Json = nlohmann::ordered_json;

Json pass_json(const verify::PassEnvelope& pass) {
  Json sizes = Json::object();
  for (const auto& [name, range] : pass.sizes) sizes[name] = {range.least, range.most};
  return {{"calls", pass.calls}, {"sizes", sizes}, {"kinds", pass.kinds}};
}

std::string range_text(std::int64_t least, std::int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} … {}", least, most);
}

}  // namespace

Json tried_json(const verify::Coverage& coverage) {
  Json as_used = Json::array();
  for (const verify::SizesAsUsed& one : coverage.as_used) {
    as_used.push_back({{"sizes", verify::cell_words(one.cell)}, {"calls", one.calls}});
  }
  return {{"refused", coverage.refused},
          {"claimed_not_tried", coverage.not_tried},
          {"pairs", {{"claimed", coverage.pairs_claimed}, {"not_met", coverage.pairs_not_met}}},
          {"as_used", as_used},
          {"forward", pass_json(coverage.tried.forward)},
          {"gradients", pass_json(coverage.tried.gradients)}};
}

std::string as_used_text(const verify::Coverage& coverage) {
  using verify::class_words;
  using verify::Factor;
  if (coverage.as_used.empty()) return "";
  std::vector<cli::Column> columns = {{"heads as used"}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [cell, calls] : coverage.as_used) {
    const bool is_other = cell[1] == verify::kNoClass;
    const std::string width = is_other ? "other" : class_words(Factor::head_dim, cell[1]);
    const std::string title =
        fmt::format("{}, {} channels", class_words(Factor::dtype, cell[0]), width);
    if (rows.empty() || rows.back().front() != title) rows.push_back({title});
    rows.back().push_back(calls == 0 ? "none" : fmt::format("{}", calls));
    if (rows.size() > 1) continue;
    columns.push_back({fmt::format("{} × {}", class_words(Factor::group, cell[2]),
                                   class_words(Factor::keys, cell[3])),
                       cli::Align::right});
  }
  cli::TextTable table(columns);
  for (std::vector<std::string>& row : rows) table.add(std::move(row));
  return table.text() + "calls of each: query heads per K/V head × keys\n";
}

std::string range_text(const verify::PassEnvelope& pass, const std::string& size) {
  const auto found = pass.sizes.find(size);
  return found == pass.sizes.end() ? "-" : range_text(found->second.least, found->second.most);
}

std::string kinds_text(const verify::PassEnvelope& pass) {
  std::string text;
  for (const auto& [kind, words] : pass.kinds) {
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", kind);
    for (const auto& [word, calls] : words) {
      text += fmt::format("{}{}", word == words.begin()->first ? "" : ", ", word);
    }
  }
  return text;
}

}  // namespace ringlab::report
