// Pairs of claims that met and those that did not, and calls at sizes of models, as text.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/line/text_table.h"
#include "cli/report/human.h"
#include "cli/verify/verify.h"

namespace ringlab::cli {
namespace {

using report::SubjectResult;

// Sizes of models: a row for each dtype and width, the calls of each group and number of keys. Empty
// where the subject claims none of them.
std::string as_used_text(const verify::Coverage& coverage) {
  using verify::class_words;
  using verify::Factor;
  if (coverage.as_used.empty()) return "";
  std::vector<Column> columns = {{"heads as used"}};
  std::vector<std::vector<std::string>> rows;
  for (const verify::SizesAsUsed& one : coverage.as_used) {
    const verify::Meetings::Cell& cell = one.cell;
    const bool is_other = cell[1] == verify::kNoClass;
    const std::string width = is_other ? "other" : class_words(Factor::head_dim, cell[1]);
    const std::string title =
        fmt::format("{}, {} channels", class_words(Factor::dtype, cell[0]), width);
    if (rows.empty() || rows.back().front() != title) rows.push_back({title});
    rows.back().push_back(one.is_open()    ? "open"
                          : one.calls == 0 ? "none"
                                           : fmt::format("{}", one.calls));
    if (rows.size() > 1) continue;
    columns.push_back({fmt::format("{} × {}", class_words(Factor::group, cell[2]),
                                   class_words(Factor::keys, cell[3])),
                       Align::right});
  }
  TextTable table(columns);
  for (std::vector<std::string>& row : rows) table.add(std::move(row));
  std::string text = table.text() + "calls of each: query heads per K/V head × keys\n";
  if (!coverage.open_sizes().empty()) text += "open: its bounds there are as wide as the answer\n";
  return text;
}

}  // namespace

std::string joint_coverage_text(const report::VerifyRun& run) {
  constexpr std::size_t kMostPairs = 6;
  if (run.subjects.size() > 1) return "";
  std::string text;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Coverage& coverage = subject.coverage;
    const std::vector<std::string>& open = coverage.pairs_not_met;
    if (coverage.cases == 0 || coverage.pairs_claimed.empty()) continue;
    text += fmt::format("\npairs of claims that met: {} of {}\n",
                        report::human_count(std::ssize(coverage.pairs_claimed) - std::ssize(open)),
                        report::human_count(std::ssize(coverage.pairs_claimed)));
    const std::size_t shown = std::min(open.size(), kMostPairs);
    for (std::size_t i = 0; i < shown; ++i) text += fmt::format("  not met: {}\n", open[i]);
    if (open.size() > shown) text += fmt::format("  and {} more (--json)\n", open.size() - shown);
    text += "\n" + as_used_text(coverage);
  }
  return text;
}

}  // namespace ringlab::cli
