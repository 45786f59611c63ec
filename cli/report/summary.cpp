// The summary table, the table of laws, the table of promises.
#include <fmt/format.h>

#include <map>

#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/sections.h"

namespace ringlab::report {
namespace {

std::string cell(const std::string& label, const std::string& value, const char* css_class = "n") {
  return fmt::format("<td class=\"{}\" data-label=\"{}\">{}</td>", css_class, label, escape(value));
}

std::string summary_row(const SubjectResult& subject) {
  const bool passed = subject.passed();
  const std::size_t laws = subject.laws.laws.size();
  std::string row =
      fmt::format("<tr><td><b>{}</b></td><td><span class=\"tag {}\">{}</span></td>",
                  escape(subject.subject.name), passed ? "good" : "bad", subject.verdict());
  row += cell("error / bound, input", subject.input_text());
  row += cell("error / bound, laws", subject.laws_text());
  row += cell("laws held", fmt::format("{} of {}", subject.laws_held(), laws));
  row += cell("skipped", fmt::format("{}", subject.laws.laws_skipped()));
  row += cell("bytes moved", human_bytes(subject.sent_bytes()));
  row += cell("peak per rank", human_bytes(subject.peak_bytes()));
  row += cell("time, input", human_seconds(subject.on_input.run.seconds));
  return row + "</tr>\n";
}

const char* law_mark(const verify::LawVerdict& law) {
  if (law.failure) return "<span class=\"broken\">✗</span>";
  if (!law.skipped.empty()) return "<span class=\"skipped\">–</span>";
  if (law.cases == 0) return "<span class=\"skipped\">?</span>";
  return "<span class=\"held\">✓</span>";
}

std::string law_tooltip(const verify::LawVerdict& law) {
  if (law.failure) return "broken: " + law.failure->message;
  if (!law.skipped.empty()) return "skipped: " + law.skipped;
  return fmt::format("held in {} cases, worst error / bound {:.3g}, {} discarded", law.cases,
                     law.worst_ratio, law.discarded);
}

std::string sentence(std::string name) {
  for (char& c : name) {
    if (c == '_') c = ' ';
  }
  return name;
}

std::string law_row(const VerifyRun& run, std::size_t index) {
  const verify::LawVerdict& law = run.subjects.front().laws.laws[index];
  std::string row = fmt::format("<tr><td class=\"id\">{}</td><td>{}<small>{}</small></td>",
                                escape(law.id), escape(sentence(law.name)), escape(law.statement));
  for (const SubjectResult& subject : run.subjects) {
    if (index >= subject.laws.laws.size()) continue;
    const verify::LawVerdict& verdict = subject.laws.laws[index];
    row += fmt::format("<td class=\"mark\" title=\"{}\">{}</td>", escape(law_tooltip(verdict)),
                       law_mark(verdict));
  }
  return row + "</tr>\n";
}

// Each reason once, with the laws and subjects it applies to.
std::string skip_list(const VerifyRun& run) {
  std::map<std::string, std::map<std::string, std::string>> reasons;  // reason → law → subjects
  for (const SubjectResult& subject : run.subjects) {
    for (const verify::LawVerdict& law : subject.laws.laws) {
      if (law.skipped.empty()) continue;
      std::string& names = reasons[law.skipped][law.id];
      names += (names.empty() ? "" : ", ") + subject.subject.name;
    }
  }
  if (reasons.empty()) return "";
  std::string html = "<h3>Skipped, and why</h3><ul class=\"soft\">";
  for (const auto& [reason, laws] : reasons) {
    std::map<std::string, std::string> by_subjects;
    for (const auto& [id, names] : laws) {
      by_subjects[names] += (by_subjects[names].empty() ? "" : ", ") + id;
    }
    for (const auto& [names, ids] : by_subjects) {
      html += fmt::format("<li>{} ({}): {}</li>", escape(ids), escape(names), escape(reason));
    }
  }
  return html + "</ul>\n";
}

}  // namespace

std::string summary_section(const VerifyRun& run) {
  std::string rows;
  for (const SubjectResult& subject : run.subjects) rows += summary_row(subject);
  return "<h2>Summary</h2>" +
         html_table({"subject", "verdict", "#error / bound, input", "#laws", "#laws held",
                     "#skipped", "#bytes moved", "#peak per rank", "#time, input"},
                    rows, "stack");
}

std::string laws_section(const VerifyRun& run) {
  if (run.subjects.empty() || run.subjects.front().laws.laws.empty()) return "";
  std::string html =
      "<h2>Laws</h2><p class=\"soft\">Statements that every exact attention satisfies, each tried "
      "on "
      "random small cases. ✓ held · ✗ broken · – skipped · ? no case applied</p>"
      "<div class=\"framed\"><table class=\"laws\"><thead><tr><th class=\"id\">law</th><th></th>";
  for (std::size_t i = 0; i < run.subjects.size(); ++i) {
    html += fmt::format("<th class=\"mark\" title=\"{}\">{}</th>",
                        escape(run.subjects[i].subject.name), i + 1);
  }
  html += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < run.subjects.front().laws.laws.size(); ++i) html += law_row(run, i);
  html += "</tbody></table></div><p class=\"legend\">";
  for (std::size_t i = 0; i < run.subjects.size(); ++i) {
    html += fmt::format("<span>{} {}</span>", i + 1, escape(run.subjects[i].subject.name));
  }
  return html + "</p>\n" + skip_list(run);
}

std::string promises_section(const VerifyRun& run) {
  std::string html =
      "<h2>What each subject promises</h2><p class=\"soft\">The bounds above follow from these "
      "unit roundoffs; a subject that computes less precisely than it promises is wrong.</p>";
  std::string rows;
  const auto roundoff = [](double u) { return u == 0 ? "exact" : fmt::format("{:.2g}", u); };
  for (const SubjectResult& subject : run.subjects) {
    const NumericsProfile& profile = subject.profile;
    rows += fmt::format("<tr><td><b>{}</b></td>", escape(subject.subject.name));
    rows += cell("output", std::string(dtype_info(profile.out_dtype).name), "");
    rows += cell("accumulation", roundoff(profile.u_accumulate));
    rows += cell("exp", roundoff(profile.exp_error));
    rows += cell("probabilities", roundoff(profile.u_probability));
    rows += cell("lse", roundoff(profile.u_lse));
    rows += cell("rescales", fmt::format("{}", profile.max_rescales)) + "</tr>\n";
  }
  return html + html_table({"subject", "output", "#accumulation", "#exp", "#probabilities", "#lse",
                            "#rescales"},
                           rows, "stack");
}

}  // namespace ringlab::report
