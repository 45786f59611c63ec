#include "cli/model/plan_parts.h"

#include "cli/line/text_table.h"
#include "cli/report/human.h"

namespace ringlab::cli {

std::string bytes_text(double bytes) {
  return report::human_bytes(static_cast<std::int64_t>(bytes));
}

void print_parts(const std::string& title, const Parts& parts,
                 const std::function<std::string(double)>& human, Output& output) {
  constexpr double kWidest = 40;
  double all = 0;
  for (const auto& [part, amount] : parts) all += amount;
  TextTable table({{title}, {human(all), Align::right}, {""}});
  for (const auto& [part, amount] : parts) {
    if (amount == 0) continue;
    table.add({part, human(amount),
               std::string(static_cast<std::size_t>(std::max(1.0, kWidest * amount / all)), '#')});
  }
  output.print("\n{}", table.text());
}

Json parts_json(const Parts& parts) {
  Json json = Json::object();
  for (const auto& [part, amount] : parts) json[part] = amount;
  return json;
}

Json print_sentences(const std::vector<std::pair<std::string, std::string>>& reasons,
                     Output& output) {
  Json json = Json::array();
  for (const auto& [part, sentence] : reasons) {
    if (sentence.empty()) continue;
    output.print("{:<13} {}\n", part, sentence);
    json.push_back({{"part", part}, {"sentence", sentence}});
  }
  return json;
}

}  // namespace ringlab::cli
