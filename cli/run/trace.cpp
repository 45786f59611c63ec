// `ringlab trace FILE`: what a recorded run says about overlap, idle time and slow ranks.
#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/text_table.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_picture.h"
#include "reference/core/error.h"
#include "reference/io/input_file.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path, kMostBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string time_text(std::int64_t ns) {
  return report::human_seconds(static_cast<double>(ns) * 1e-9);
}

void print_ranks(const report::TraceSummary& summary, Output& output) {
  TextTable table({{"rank", Align::right},
                   {"computing", Align::right},
                   {"in flight", Align::right},
                   {"waiting", Align::right},
                   {"overlap", Align::right},
                   {"idle", Align::right},
                   {"block p50", Align::right},
                   {"p99", Align::right}});
  for (const report::RankSummary& rank : summary.ranks) {
    table.add({fmt::format("{}", rank.rank), time_text(rank.compute_ns),
               time_text(rank.in_flight_ns), time_text(rank.wait_ns),
               report::overlap_text(rank.overlap()), report::human_percent(rank.idle()),
               time_text(rank.block.p50_ns), time_text(rank.block.p99_ns)});
  }
  output.print("{}", table.text());
}

void print_findings(const report::TraceSummary& summary, Output& output) {
  output.print("\nrun           {}\noverlap       {}\nidle          {}\n",
               time_text(summary.span_ns), report::overlap_text(summary.overlap()),
               report::human_percent(summary.idle()));
  output.print("straggler     {}\nslowest link  {}\n", report::straggler_text(summary),
               report::slowest_link_text(summary));
}

std::string page_words(const report::TraceSummary& summary) {
  return fmt::format("Overlap {}, idle {}, straggler {}, slowest link {}.",
                     report::overlap_text(summary.overlap()), report::human_percent(summary.idle()),
                     report::straggler_text(summary), report::slowest_link_text(summary));
}

Json seconds_json(const report::Spread& spread) {
  return {{"count", spread.count},
          {"p50_seconds", static_cast<double>(spread.p50_ns) * 1e-9},
          {"p99_seconds", static_cast<double>(spread.p99_ns) * 1e-9}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json slow_ranks_json(const report::TraceSummary& summary) {
  Json ranks = Json::array();
  for (const report::RankSummary& rank : summary.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"compute_seconds", static_cast<double>(rank.compute_ns) * 1e-9},
                     {"in_flight_seconds", static_cast<double>(rank.in_flight_ns) * 1e-9},
                     {"wait_seconds", static_cast<double>(rank.wait_ns) * 1e-9},
                     {"overlap", optional_json(rank.overlap())},
                     {"idle", rank.idle()},
                     {"received_bytes", rank.bytes_received},
                     {"block", seconds_json(rank.block)}});
  }
  return ranks;
}

Json document_of(const std::string& path, std::size_t events, const report::TraceSummary& summary) {
  Json links = Json::array();
  for (const report::LinkSummary& link : summary.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes", link.bytes},
                     {"receive", seconds_json(link.receive)}});
  }
  return {{"trace", path},
          {"events", events},
          {"seconds", static_cast<double>(summary.span_ns) * 1e-9},
          {"overlap", optional_json(summary.overlap())},
          {"idle", summary.idle()},
          {"straggler", summary.straggler ? Json(*summary.straggler) : Json()},
          {"straggler_ratio", summary.straggler_ratio},
          {"slowest_link", summary.slowest_link ? links[*summary.slowest_link] : Json()},
          {"ranks", slow_ranks_json(summary)},
          {"links", links}};
}

int run_trace(Arguments& arguments) {
  Output output(arguments);
  const std::string path = arguments.operands()[0];
  const std::optional<std::string> svg = take_file(arguments, "svg");
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  const report::Trace trace = report::parse_trace(read_text(path), path);
  if (trace.empty()) {
    throw_input_error({path, "a trace with events", "none", ""});
  }
  const report::TraceSummary summary = report::summarize(trace);
  print_ranks(summary, output);
  print_findings(summary, output);
  if (svg) output.files().write(*svg, report::trace_svg_file(trace, summary));
  if (html) output.show(*html, page_words(summary), {{"events", report::events_json(trace)}});
  return output.finish("trace", document_of(path, trace.size(), summary));
}

}  // namespace

Command trace_command() {
  Command command{"trace", "draw a recorded run; print overlap, idle time, slow ranks and links"};
  command.operands = "FILE";
  command.min_operands = command.max_operands = 1;
  command.options = {{"svg", "FILE", "write the lanes of all ranks as a picture"},
                     {"html", "FILE", "write picture and tables as one page"},
                     json_option()};
  command.examples = {
      "ringlab run optimized --text README.md --ranks 4 --mask causal --trace trace.json",
      "ringlab trace trace.json --html trace.html",
  };
  command.more =
      "Traces are written by `ringlab run --trace`. They open in Perfetto and chrome://tracing "
      "too.";
  command.run = run_trace;
  return command;
}

}  // namespace ringlab::cli
