#include "cli/report/tried.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/report/html.h"

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

std::string words_text(const Json& words) {
  std::string text;
  for (const auto& [word, calls] : words.items()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", word, calls.get<std::int64_t>());
  }
  return text;
}

std::string pass_rows(const std::string& name, const Json& pass) {
  const auto row = [](const std::string& label, const std::string& value) {
    return fmt::format("<tr><th>{}</th><td>{}</td></tr>", escape(label), escape(value));
  };
  std::string html = row(name, fmt::format("{} calls", pass.at("calls").get<std::int64_t>()));
  for (const auto& [size, range] : pass.at("sizes").items()) {
    html += row(size, range_text(range.at(0).get<std::int64_t>(), range.at(1).get<std::int64_t>()));
  }
  for (const auto& [kind, words] : pass.at("kinds").items()) html += row(kind, words_text(words));
  return html;
}

}  // namespace

Json tried_json(const verify::Coverage& coverage) {
  return {{"refused", coverage.refused},
          {"claimed_not_tried", coverage.not_tried},
          {"forward", pass_json(coverage.tried.forward)},
          {"gradients", pass_json(coverage.tried.gradients)}};
}

std::string tried_table(const Json& tried) {
  std::string html = "<table class=\"facts\">" + pass_rows("forward", tried.at("forward"));
  const Json& gradients = tried.at("gradients");
  if (gradients.at("calls") != 0) html += pass_rows("with gradients", gradients);
  html += "</table>";
  if (tried.at("refused") != 0) {
    html += fmt::format("<p>Cases refused although claimed: {}</p>", tried.at("refused").dump());
  }
  const auto missing = tried.at("claimed_not_tried").get<std::vector<std::string>>();
  if (missing.empty()) return html + "\n";
  return html + fmt::format("<p>Claimed, but not tried: {}</p>\n",
                            escape(fmt::format("{}", fmt::join(missing, ", "))));
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
