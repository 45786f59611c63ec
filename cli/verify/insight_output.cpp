#include <fmt/format.h>

#include "cli/verify/verify.h"
#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::cli {

std::string insight_text(const std::string& subject, const verify::Insight& insight) {
  const verify::Diagnosis& diagnosis = insight.diagnosis;
  std::string text;
  if (!diagnosis.explains.empty()) {
    text += fmt::format("  {}\n", diagnosis.sentence());
    if (diagnosis.cases > 0) {
      text += fmt::format("  every number of {} cases agrees with that\n", diagnosis.cases);
    }
  }
  for (const std::string& finding : diagnosis.findings) text += fmt::format("  {}\n", finding);
  if (!insight.passes_if.empty()) text += fmt::format("  {}\n", insight.passes_if);
  for (const std::string& warning : insight.warnings) {
    text += fmt::format("  warning: {}\n", warning);
  }
  for (const std::string& remark : insight.remarks) text += fmt::format("  {}\n", remark);
  return text.empty() ? "" : fmt::format("\n{}\n{}", subject, text);
}

Json insight_json(const std::string& stage, const verify::Insight& insight) {
  Json explains = Json::array();
  for (const verify::Suspect& suspect : insight.diagnosis.explains) {
    explains.push_back({{"id", suspect.id}, {"what", suspect.what}});
  }
  const bool is_named = insight.diagnosis.explains.size() == 1;
  const std::string question =
      is_named ? verify::question_about(insight.diagnosis.explains.front().id, stage) : "";
  return {{"explains", explains},
          {"sentence", insight.diagnosis.sentence()},
          {"question", question},
          {"law", insight.of_law},
          {"cases", insight.diagnosis.cases},
          {"findings", insight.diagnosis.findings},
          {"passes_if", insight.passes_if},
          {"warnings", insight.warnings},
          {"remarks", insight.remarks}};
}

}  // namespace ringlab::cli
