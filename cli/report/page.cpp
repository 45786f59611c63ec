#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/html.h"
#include "cli/report/sections.h"

namespace ringlab::report {
namespace {

std::string banner(const VerifyRun& run) {
  const auto right = std::count_if(run.subjects.begin(), run.subjects.end(),
                                   [](const SubjectResult& subject) { return subject.passed(); });
  const std::string text = fmt::format(
      "{} of {} subjects stay inside every bound and keep every law", right, run.subjects.size());
  const std::string ended = run.ended.empty() ? "" : ", " + run.ended;
  return verdict_banner(
      run.passed(), run.passed() ? "✓" : "✗",
      fmt::format("{}<br><span>{:.1f} s{}</span>", text, run.seconds, escape(ended)));
}

std::string notes(const VerifyRun& run) {
  std::string html;
  for (const std::string& note : run.notes) {
    html += fmt::format("<p class=\"soft\">Note: {}</p>\n", escape(note));
  }
  return html;
}

std::string footer(const VerifyRun& run) {
  return fmt::format(
      "<footer>ringlab {} · {} · <code>{}</code><br>Bounds are a-priori, per element, from the "
      "fp64 "
      "reference with a certified error of its own; a ratio above 1 is wrong. A skipped law says "
      "why; "
      "absent is not passed.</footer>\n",
      escape(run.version), escape(run.compiler), escape(run.flags));
}

std::string work_sections(const VerifyRun& run) {
  return layout_section(run) + error_section(run) + cost_section(run);
}

std::string law_sections(const VerifyRun& run) {
  return laws_section(run) + coverage_section(run) + promises_section(run);
}

/// HTML under a title, closed until it is clicked.
std::string folded(const char* title, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", title, html);
}

}  // namespace

std::string verify_page(const VerifyRun& run) {
  const std::string wrong = wrong_answers_section(run);
  std::string body = "<h1>Exact attention, verified</h1>\n" + banner(run);
  if (wrong.empty()) {
    body += chips(run.configuration) + notes(run) + summary_section(run) + insight_section(run) +
            work_sections(run) + law_sections(run);
  } else {
    body += wrong + folded("Law by law", failures_section(run) + insight_section(run)) +
            folded("The run", chips(run.configuration) + notes(run) + summary_section(run)) +
            folded("Work, errors and costs", work_sections(run)) +
            folded("All laws, and what was tried", law_sections(run));
  }
  body += footer(run);
  return html_page({.title = fmt::format("ringlab verify: {}", run.passed() ? "passed" : "wrong"),
                    .body = body});
}

}  // namespace ringlab::report
