// The sections with pictures: layouts, errors, costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/bars.h"
#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/maps.h"
#include "cli/report/sections.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr int kMostRanksDrawn = 32;

std::string hop_legend(int hops) {
  std::string html = "<p class=\"legend\"><span>computed at hop</span>";
  for (int hop = 0; hop < std::min(hops, kMostRanksDrawn); ++hop) {
    html +=
        fmt::format("<span><i class=\"hop\" style=\"{}\"></i>{}</span>", hop_style(hop, hops), hop);
  }
  return html + "<span><i class=\"none\"></i>nothing visible</span></p>\n";
}

// The busy share in percent, never rounded up to 100.
std::string busy_text(double fraction) {
  const double percent = std::floor(1000 * fraction) / 10;
  return fmt::format("busy {:.{}f} %", percent, percent > 99 && percent < 100 ? 1 : 0);
}

std::string layout_figure(const VerifyRun& run, LayoutKind kind) {
  const RunOptions& options = run.options;
  const Shape& shape = run.problem.shape;
  const Layout queries(kind, shape.q_tokens, options.ranks),
      keys(kind, shape.kv_tokens, options.ranks);
  const RingWork work = ring_work(run.problem.mask, queries, keys, options.direction);
  const bool chosen = kind == options.layout;
  HtmlFigure parts;
  parts.heading = std::string(layout_name(kind)) + (chosen ? " · this run" : "");
  parts.remark = busy_text(work.busy_fraction());
  parts.picture = layout_map(run.problem.mask, queries, keys, options.direction) + work_chart(work);
  parts.chosen = chosen;
  return figure(parts);
}

std::string measured_figures(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    const RingWork work = measured_work(subject.on_input.run);
    std::int64_t pairs = 0;
    for (const auto& row : work.pairs) {
      for (const std::int64_t count : row) pairs += count;
    }
    if (pairs == 0) continue;
    html += figure(
        {subject.subject.name, human_count(pairs) + " pairs per head", work_chart(work), ""});
  }
  return html;
}

BarRow error_row(const SubjectResult& subject) {
  BarRow row{subject.subject.name, {}};
  const auto add = [&](double ratio, const std::string& label, const char* inside) {
    row.bars.push_back({ratio, label, ratio <= 1 ? inside : "bad", ""});
  };
  if (!subject.on_input.error.empty()) add(INFINITY, "input failed", "bad");
  for (const TensorReport& tensor : subject.on_input.report.tensors) {
    add(tensor.worst.ratio, tensor.tensor + " " + human_ratio(tensor.worst.ratio), "first");
  }
  add(subject.worst_law_ratio(), "laws " + subject.laws_text(), "second");
  return row;
}

std::int64_t kv_bytes(const Problem& problem, std::int64_t tokens) {
  const Shape& shape = problem.shape;
  return shape.batch * shape.kv_heads * tokens * (shape.head_dim + shape.v_dim) *
         dtype_info(problem.dtype).bytes;
}

std::string traffic_figure(const VerifyRun& run) {
  const std::int64_t all = kv_bytes(run.problem, run.problem.shape.kv_tokens);
  BarChart chart{"bytes moved by each subject", {}, {}, 0};
  for (const SubjectResult& subject : run.subjects) {
    const auto bytes = static_cast<double>(subject.sent_bytes());
    chart.rows.push_back(
        {subject.subject.name, {{bytes, human_bytes(subject.sent_bytes()), "first", ""}}});
  }
  const std::int64_t moved = all * (run.options.ranks - 1);
  chart.marks.push_back({static_cast<double>(moved), "(P−1) · all K/V = " + human_bytes(moved)});
  return figure(
      {"Bytes moved", "sum over ranks", bar_chart(chart),
       "The mark is what every K/V chunk visiting every other rank once costs. Headers and "
       "positions that travel along come on top."});
}

std::string memory_figure(const VerifyRun& run) {
  const std::int64_t tokens = run.problem.shape.kv_tokens;
  const Layout keys(run.options.layout, tokens, run.options.ranks);
  BarChart chart{"peak memory of each subject", {}, {}, 0};
  for (const SubjectResult& subject : run.subjects) {
    chart.rows.push_back(
        {subject.subject.name,
         {{static_cast<double>(subject.peak_kv_bytes()),
           "K/V " + human_bytes(subject.peak_kv_bytes()), "first", "K/V chunks held at one time"},
          {static_cast<double>(subject.peak_bytes()), "all " + human_bytes(subject.peak_bytes()),
           "second", "every buffer besides inputs and outputs"}}});
  }
  const std::int64_t all = kv_bytes(run.problem, tokens);
  const std::int64_t two = kv_bytes(run.problem, 2 * keys.largest_chunk());
  chart.marks.push_back({static_cast<double>(two), "two chunks, 2N/P = " + human_bytes(two)});
  chart.marks.push_back({static_cast<double>(all), "all K/V, N = " + human_bytes(all)});
  return figure(
      {"Peak memory", "of the rank that holds most", bar_chart(chart),
       "Measured allocations. A broadcast holds all keys and values; a ring two chunks."});
}

}  // namespace

std::string layout_section(const VerifyRun& run) {
  if (run.options.ranks > kMostRanksDrawn) return "";
  std::string html = fmt::format(
      "<h2>Who computes what, when</h2><p class=\"soft\">Mask <code>{}</code> over {} ranks. "
      "Above: "
      "queries (down) against keys (across) in the order the ranks hold them; the number is the "
      "hop "
      "at which a ring computes the block. Below: the pairs each rank has at each hop. Busy is "
      "work "
      "over time when every hop waits for its busiest rank.</p>\n",
      escape(run.problem.mask.text()), run.options.ranks);
  html += hop_legend(run.options.ranks) + "<div class=\"cards\">";
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    html += layout_figure(run, kind);
  }
  html += "</div>\n";
  const std::string measured = measured_figures(run);
  if (measured.empty()) return html;
  return html +
         "<h2>What the subjects computed</h2><p class=\"soft\">Recorded during the run: pairs per "
         "rank "
         "and hop, relative to the busiest.</p><div class=\"cards\">" +
         measured + "</div>\n";
}

std::string error_section(const VerifyRun& run) {
  BarChart chart{"worst error over bound of each subject", {}, {{1, "bound"}}, 1.02};
  for (const SubjectResult& subject : run.subjects) {
    if (!subject.on_input.report.tensors.empty() || !subject.laws.laws.empty()) {
      chart.rows.push_back(error_row(subject));
    }
  }
  const std::string caption =
      "Largest |got − exact| / allowed over all compared elements. Longer than the mark is wrong; "
      "a bar "
      "near zero means a loose bound or an exact input, not a better subject.";
  return "<h2>Error and cost</h2><p class=\"legend\"><span><i class=\"first\"></i>on the "
         "input</span>"
         "<span><i class=\"second\"></i>under the laws</span><span><i "
         "class=\"bad\"></i>outside</span></p>"
         "<div class=\"cards\">" +
         figure({"Error against bound", "1 is the limit", bar_chart(chart), caption});
}

std::string cost_section(const VerifyRun& run) {
  return traffic_figure(run) + memory_figure(run) + "</div>\n";
}

}  // namespace ringlab::report
