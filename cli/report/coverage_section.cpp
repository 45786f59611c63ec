// The section about coverage: bars of how often kinds of cases were tried.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/report/bars.h"
#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/sections.h"
#include "cli/report/tried.h"

namespace ringlab::report {
namespace {

constexpr std::size_t kMostClassesDrawn = 18;

/// The subject whose cases were fewest in a class that it has to have.
struct LeastShare {
  double share;
  std::int64_t cases;
  std::string subject;
};

std::vector<std::pair<std::string, LeastShare>> rarest_classes(const VerifyRun& run) {
  std::map<std::string, LeastShare> least;
  for (const SubjectResult& subject : run.subjects) {
    if (!subject.coverage.is_judged) continue;
    for (const verify::ClassShare& one : subject.coverage.classes) {
      const LeastShare found{subject.coverage.share(one), one.cases, subject.subject.name};
      if (!one.required) continue;
      const auto [known, is_new] = least.try_emplace(one.name, found);
      if (!is_new && found.share < known->second.share) known->second = found;
    }
  }
  std::vector<std::pair<std::string, LeastShare>> sorted(least.begin(), least.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.share < b.second.share; });
  return sorted;
}

std::string share_section(const VerifyRun& run) {
  const auto classes = rarest_classes(run);
  if (classes.empty()) return "";
  BarChart chart{"share of the cases in each class", {}, {{verify::kLeastShare, "2 %"}}, 0.1};
  for (std::size_t i = 0; i < std::min(classes.size(), kMostClassesDrawn); ++i) {
    const auto& [name, least] = classes[i];
    const bool enough = least.share >= verify::kLeastShare;
    chart.rows.push_back(
        {name,
         {{least.share, fmt::format("{:.1f} %", 100 * least.share), enough ? "first" : "bad",
           fmt::format("{} cases of {}", least.cases, least.subject)}}});
  }
  return fmt::format(
      "<h2>What was tried</h2><p class=\"soft\">Kinds of cases that a subject supports have to "
      "make up 2 % of its cases or more, or the verification fails. Here the rarest of {}, each "
      "for the subject that had fewest.</p><div class=\"cards\">{}</div>\n",
      classes.size(),
      figure({"Rarest classes of cases", "share of all cases that held", bar_chart(chart),
              "A case is in several classes."}));
}

/// The gaps of each subject, and the ranges of sizes and kinds of cases that reached it.
std::string tried_section(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    for (const std::string& gap : subject.gaps) {
      html += fmt::format("<p>No pass for {}: {}</p>\n", escape(subject.subject.name), escape(gap));
    }
    if (subject.coverage.cases == 0) continue;
    html += fmt::format("<details><summary>What was tried of {}</summary>{}</details>\n",
                        escape(subject.subject.name), tried_table(tried_json(subject.coverage)));
  }
  return html;
}

}  // namespace

std::string coverage_section(const VerifyRun& run) {
  return share_section(run) + tried_section(run);
}

}  // namespace ringlab::report
