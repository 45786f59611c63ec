#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/sections.h"
#include "cli/report/style.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

std::string verdict_banner(const VerifyRun& run) {
  const auto right = std::count_if(run.subjects.begin(), run.subjects.end(),
                                   [](const SubjectResult& subject) { return subject.passed(); });
  const std::string text = fmt::format(
      "{} of {} subjects stay inside every bound and keep every law", right, run.subjects.size());
  const std::string ended = run.ended.empty() ? "" : ", " + run.ended;
  return fmt::format(
      "<div class=\"verdict {}\"><b>{}</b><div>{}<br><span>{:.1f} s{}</span></div></div>\n",
      run.passed() ? "good" : "bad", run.passed() ? "✓" : "✗", text, run.seconds, escape(ended));
}

std::string configuration_chips(const VerifyRun& run) {
  std::string chips = "<ul class=\"chips\">";
  for (const auto& [name, value] : run.configuration) {
    chips += fmt::format("<li><b>{}</b> {}</li>", escape(name), escape(value));
  }
  chips += "</ul>\n";
  for (const std::string& note : run.notes) {
    chips += fmt::format("<p class=\"soft\">Note: {}</p>\n", escape(note));
  }
  return chips;
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

}  // namespace

std::string figure(const Figure& parts) {
  std::string html = parts.chosen ? "<figure class=\"chosen\">" : "<figure>";
  html += fmt::format("<header><h3>{}</h3><span>{}</span></header>{}", escape(parts.heading),
                      escape(parts.remark), parts.picture);
  if (!parts.caption.empty()) {
    html += fmt::format("<figcaption>{}</figcaption>", escape(parts.caption));
  }
  return html + "</figure>\n";
}

std::string verify_page(const VerifyRun& run) {
  std::string body = "<h1>Exact attention, verified</h1>\n";
  body += verdict_banner(run) + configuration_chips(run) + summary_section(run);
  body += failures_section(run) + insight_section(run) + layout_section(run) + error_section(run) +
          cost_section(run);
  body += laws_section(run) + coverage_section(run) + promises_section(run) + footer(run);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>ringlab verify: {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "</body>\n</html>\n",
      run.passed() ? "passed" : "wrong", style_sheet(), body);
}

}  // namespace ringlab::report
