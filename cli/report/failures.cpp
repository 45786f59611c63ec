// The section about failures: each smallest case drawn, with the line that runs it again; and the
// section about insight into each subject: the name of its mistake, warnings, its arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/report/html.h"
#include "cli/report/maps.h"
#include "cli/report/sections.h"
#include "cli/report/verdict.h"

namespace ringlab::report {
namespace {

// A law broken in one and the same smallest case, and the subjects that break it.
struct Breach {
  const verify::LawVerdict* law;
  std::vector<const SubjectResult*> subjects;
};

std::vector<Breach> find_breaches(const VerifyRun& run) {
  std::vector<Breach> breaches;
  for (const SubjectResult& subject : run.subjects) {
    for (const verify::LawVerdict& law : subject.laws.laws) {
      if (!law.failure) continue;
      const auto known = std::find_if(breaches.begin(), breaches.end(), [&](const Breach& other) {
        return other.law->id == law.id && other.law->failure->shrunk == law.failure->shrunk;
      });
      if (known == breaches.end()) {
        breaches.push_back({&law, {&subject}});
      } else {
        known->subjects.push_back(&subject);
      }
    }
  }
  return breaches;
}

std::string law_failure(const Breach& breach) {
  const verify::LawFailure& failure = *breach.law->failure;
  std::string names;
  for (const SubjectResult* subject : breach.subjects) {
    names += (names.empty() ? "" : ", ") + subject->subject.name;
  }
  std::string html = fmt::format(
      "<div class=\"card failure\"><div><h3>{} {} {}</h3><p>{}</p><p class=\"soft\">Smallest case "
      "found ({} shrinks): {}</p><pre>{}</pre><p class=\"soft\">Run it again:</p>"
      "<pre>{}</pre></div>",
      escape(names), breach.subjects.size() == 1 ? "breaks" : "break", escape(breach.law->id),
      escape(breach.law->statement), failure.shrinks, escape(verify::describe(failure.shrunk)),
      escape(failure.doubt().empty() ? failure.message : failure.message + "\n" + failure.doubt()),
      escape(replay_line(breach.subjects.front()->subject, failure.token)));
  html += case_picture(failure.shrunk, failure.at);
  return html + "</div>\n";
}

std::string input_failure(const SubjectResult& subject) {
  const verify::InputVerdict& verdict = subject.on_input;
  const std::string text = verdict.error.empty() ? verdict.report.summary() : verdict.error;
  return fmt::format(
      "<div class=\"card failure\"><div><h3>{} is wrong on the "
      "input</h3><pre>{}</pre></div></div>\n",
      escape(subject.subject.name), escape(text));
}

std::string paragraphs(const std::vector<std::string>& sentences, const char* before) {
  std::string html;
  for (const std::string& sentence : sentences) {
    html += fmt::format("<p class=\"soft\">{}{}</p>", before, escape(sentence));
  }
  return html;
}

}  // namespace

std::string failures_section(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    if (subject.input_skipped.empty() && !subject.input_passed()) html += input_failure(subject);
  }
  for (const Breach& breach : find_breaches(run)) html += law_failure(breach);
  return html.empty() ? "" : "<h2>What went wrong</h2>\n" + html;
}

std::string insight_section(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Insight& insight = subject.insight;
    std::string text;
    if (!insight.diagnosis.explains.empty()) {
      text += fmt::format("<p><b>{}</b></p>", escape(insight.diagnosis.sentence()));
    }
    if (!insight.passes_if.empty()) text += fmt::format("<p>{}</p>", escape(insight.passes_if));
    text += paragraphs(insight.diagnosis.findings, "") + paragraphs(insight.warnings, "Warning: ") +
            paragraphs(insight.remarks, "");
    if (text.empty()) continue;
    html += fmt::format("<div class=\"card\"><div><h3>{}</h3>{}</div></div>\n",
                        escape(subject.subject.name), text);
  }
  return html.empty() ? "" : "<h2>Diagnosis</h2>\n" + html;
}

}  // namespace ringlab::report
