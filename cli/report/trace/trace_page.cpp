#include "cli/report/trace/trace_page.h"

#include <fmt/format.h>

#include "cli/report/html.h"
#include "cli/report/human.h"

namespace ringlab::report {
namespace {

std::string time_text(std::int64_t ns) { return human_seconds(static_cast<double>(ns) * 1e-9); }

std::string cells(const std::vector<std::string>& texts) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    row += fmt::format("<td{}>{}</td>", i == 0 ? "" : " class=\"n\"", escape(texts[i]));
  }
  return row + "</tr>\n";
}

std::string rank_table(const TraceSummary& summary) {
  std::string rows;
  for (const RankSummary& rank : summary.ranks) {
    rows += cells({fmt::format("{}", rank.rank), time_text(rank.compute_ns),
                   time_text(rank.in_flight_ns), time_text(rank.wait_ns),
                   overlap_text(rank.overlap()), human_percent(rank.idle()),
                   time_text(rank.block.p50_ns), time_text(rank.block.p99_ns)});
  }
  return html_table({"rank", "#computing", "#in flight", "#waiting", "#overlap", "#idle",
                     "#block p50", "#block p99"},
                    rows);
}

std::string link_table(const TraceSummary& summary) {
  std::string rows;
  for (const LinkSummary& link : summary.links) {
    rows += cells({fmt::format("{} to {}", link.from, link.to), human_count(link.receive.count),
                   human_bytes(link.bytes), time_text(link.receive.p50_ns),
                   time_text(link.receive.p99_ns)});
  }
  return html_table({"link", "#receives", "#bytes", "#p50", "#p99"}, rows);
}

std::string facts(const TraceSummary& summary) {
  return chips({{"run", time_text(summary.span_ns)},
                {"overlap", overlap_text(summary.overlap())},
                {"idle", human_percent(summary.idle())},
                {"straggler", straggler_text(summary)},
                {"slowest link", slowest_link_text(summary)}});
}

constexpr const char* kLegend =
    "<div class=\"legend\"><span><i class=\"compute\"></i>attention, with the chunk's owner</span>"
    "<span><i class=\"add\"></i>sum of gradients</span><span><i class=\"send\"></i>send under "
    "way</span><span><i class=\"receive\"></i>receive under way</span><span><i class=\"wait\"></i>"
    "stands still</span></div>\n";

}  // namespace

std::string overlap_text(const std::optional<double>& overlap) {
  return overlap ? human_percent(*overlap) : "none in flight";
}

std::string straggler_text(const TraceSummary& summary) {
  if (!summary.straggler) return "none";
  return fmt::format("rank {}, {:.2f} times the median of the others", *summary.straggler,
                     summary.straggler_ratio);
}

std::string slowest_link_text(const TraceSummary& summary) {
  if (!summary.slowest_link) return "none";
  const LinkSummary& link = summary.links[*summary.slowest_link];
  return fmt::format("rank {} to rank {}, p50 {}, p99 {}", link.from, link.to,
                     time_text(link.receive.p50_ns), time_text(link.receive.p99_ns));
}

std::string trace_figure(const Trace& trace, const TraceSummary& summary,
                         const std::string& caption) {
  return "<figure><div class=\"wide\">" + trace_picture(trace, summary) + "</div>" + kLegend +
         "<figcaption>" + escape(caption) + "</figcaption></figure>\n";
}

std::string trace_page(const Trace& trace, const TraceSummary& summary, const std::string& name) {
  std::string body = fmt::format("<h1>Trace of {}</h1>\n", escape(name)) + facts(summary);
  body += trace_figure(trace, summary,
                       "Time from the first event. Overlap is the share of the time with messages "
                       "in flight that was spent computing.");
  body += "<h2>Ranks</h2>\n" + rank_table(summary);
  if (!summary.links.empty()) body += "<h2>Links</h2>\n" + link_table(summary);
  return html_page({.title = "ringlab trace", .body = body, .more_style = trace_style()});
}

}  // namespace ringlab::report
