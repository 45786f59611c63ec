#include "cli/report/trace/trace_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/human.h"
#include "cli/report/svg.h"
#include "cli/viewer/viewer.h"

namespace ringlab::report {
namespace {

constexpr double kTraceWidth = 1100, kTraceLeft = 112, kTraceRight = 14, kTraceTop = 8, kAxis = 26;
constexpr double kLaneHeight = 11, kRankGap = 8;
constexpr double kRankHeight = kLanes * kLaneHeight + kRankGap;
constexpr double kLeastBar = 0.4;  // width of very short events, so that they are seen

/// Time on the x axis.
struct Scale {
  std::int64_t begin_ns = 0;
  std::int64_t span_ns = 0;
  double x(std::int64_t ns) const {
    const double share =
        span_ns == 0 ? 0 : static_cast<double>(ns - begin_ns) / static_cast<double>(span_ns);
    return kTraceLeft + share * (kTraceWidth - kTraceLeft - kTraceRight);
  }
};

/// 1, 2 or 5 times a power of ten, for about `parts` steps over the span.
double nice_step(double span, int parts) {
  if (!(span > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(span / parts)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * parts >= span) return factor * power;
  }
  return 10 * power;
}

void draw_axis(Svg& svg, const Scale& scale, double bottom) {
  const double step = std::max(nice_step(static_cast<double>(scale.span_ns), 8), 1.0);
  for (double at = 0; at <= static_cast<double>(scale.span_ns); at += step) {
    const double x = scale.x(scale.begin_ns + static_cast<std::int64_t>(at));
    svg.line(x, kTraceTop, x, bottom + 4, "tick");
    svg.text(x, bottom + 17, at == 0 ? "0" : human_seconds(at * 1e-9), "small", "middle");
  }
}

std::string title_of(const TraceEvent& event) {
  const double seconds = static_cast<double>(event.end_ns - event.begin_ns) * 1e-9;
  std::string text =
      fmt::format("rank {}, {}, took {}", event.rank, describe(event), human_seconds(seconds));
  if (event.bytes > 0) text += ", " + human_bytes(event.bytes);
  if (event.pass == Pass::backward) text += ", backward pass";
  return text;
}

double lane_top(int rank, Lane lane) {
  return kTraceTop + rank * kRankHeight + static_cast<int>(lane) * kLaneHeight;
}

void draw_ranks(Svg& svg, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    svg.text(2, lane_top(rank, Lane::receive), fmt::format("rank {}", rank), "label");
    for (int lane = 0; lane < kLanes; ++lane) {
      const double y = lane_top(rank, static_cast<Lane>(lane));
      svg.rect({kTraceLeft, y, kTraceWidth - kTraceLeft - kTraceRight, kLaneHeight - 1.5}, "track");
      svg.text(kTraceLeft - 6, y + 8.2, lane_name(static_cast<Lane>(lane)), "lane", "end");
    }
  }
}

void draw_event(Svg& svg, const TraceEvent& event, const Scale& scale) {
  const double x = scale.x(event.begin_ns);
  const double width = std::max(scale.x(event.end_ns) - x, kLeastBar);
  const Lane lane = lane_of(event.kind);
  svg.rect({x, lane_top(event.rank, lane), width, kLaneHeight - 1.5},
           fmt::format("event {}", trace_kind_name(event.kind)), "", title_of(event));
  if (lane == Lane::compute && event.owner != kNobody && event.kind == TraceKind::compute &&
      width > 16) {
    svg.text(x + width / 2, lane_top(event.rank, lane) + 7.8, fmt::format("{}", event.owner),
             "onevent", "middle");
  }
}

std::string lanes(const Trace& trace, const TraceSummary& summary) {
  const int ranks = ranks_of(trace);
  const double bottom = kTraceTop + ranks * kRankHeight - kRankGap;
  Svg svg(kTraceWidth, bottom + kAxis,
          fmt::format("what {} ranks did in {}; overlap {}, idle {}", ranks,
                      human_seconds(static_cast<double>(summary.span_ns) * 1e-9),
                      overlap_text(summary.overlap()), human_percent(summary.idle())));
  Scale scale{.span_ns = summary.span_ns};
  if (!trace.empty()) scale.begin_ns = trace.front().begin_ns;
  for (const TraceEvent& event : trace) scale.begin_ns = std::min(scale.begin_ns, event.begin_ns);
  draw_ranks(svg, ranks);
  draw_axis(svg, scale, bottom);
  for (const TraceEvent& event : trace) draw_event(svg, event, scale);
  return svg.finish();
}

}  // namespace

std::string trace_svg_file(const Trace& trace, const TraceSummary& summary) {
  const std::string picture = lanes(trace, summary);
  const std::size_t inside = picture.find('>') + 1;  // the description is escaped
  std::string root = picture.substr(0, inside);
  root.insert(root.find(' '), " xmlns=\"http://www.w3.org/2000/svg\"");
  return fmt::format("{}<style><![CDATA[{}svg {{ background:var(--card); }}]]></style>{}", root,
                     viewer::style_sheet(), picture.substr(inside));
}

}  // namespace ringlab::report
