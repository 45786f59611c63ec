// What was found out about each subject: the name of its mistake, warnings, its arithmetic.
#include <fmt/format.h>

#include "cli/report/sections.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

std::string paragraphs(const std::vector<std::string>& sentences, const char* before) {
  std::string html;
  for (const std::string& sentence : sentences) {
    html += fmt::format("<p class=\"soft\">{}{}</p>", before, escape(sentence));
  }
  return html;
}

}  // namespace

std::string insight_section(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Insight& insight = subject.insight;
    std::string text;
    if (!insight.diagnosis.explains.empty()) {
      text += fmt::format("<p><b>{}</b></p>", escape(insight.diagnosis.sentence()));
    }
    text += paragraphs(insight.diagnosis.findings, "") + paragraphs(insight.warnings, "Warning: ") +
            paragraphs(insight.remarks, "");
    if (text.empty()) continue;
    html += fmt::format("<div class=\"card\"><div><h3>{}</h3>{}</div></div>\n",
                        escape(subject.subject.name), text);
  }
  return html.empty() ? "" : "<h2>Diagnosis</h2>\n" + html;
}

}  // namespace ringlab::report
