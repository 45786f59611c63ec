#include "cli/report/tried.h"

#include <fmt/format.h>

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
    as_used.push_back(
        {{"sizes", verify::cell_words(one.cell)}, {"calls", one.calls}, {"open", one.open}});
  }
  return {
      {"refused", coverage.refused},
      {"claimed_not_tried", coverage.not_tried},
      {"pairs", {{"claimed", coverage.pairs_claimed.size()}, {"not_met", coverage.pairs_not_met}}},
      {"as_used", as_used},
      {"forward", pass_json(coverage.tried.forward)},
      {"gradients", pass_json(coverage.tried.gradients)}};
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
