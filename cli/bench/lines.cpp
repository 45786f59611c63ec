#include "cli/bench/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/report/human.h"

namespace ringlab::cli {

BenchTable::BenchTable(const std::vector<verify::Subject>& subjects, Output& output)
    : output_(output) {
  for (const verify::Subject& subject : subjects) {
    widths_[0] = std::max(widths_[0], static_cast<int>(subject.name.size()));
  }
  output.print("\n");
  print({"subject", "tokens", "heads", "head_dim", "ranks", "time", "p10", "Gflop/s", "moved",
         "GB/s", "K/V held", "/ first", "error/bound"},
        "");
}

void BenchTable::print(const Contender& contender, const Shape& shape, const BenchLine& line) {
  const bool counts = contender.subject.can.has(verify::Ability::counts_traffic);
  const double bytes = static_cast<double>(line.moved.sent_bytes);
  print({contender.subject.name, fmt::format("{}", shape.kv_tokens),
         fmt::format("{}/{}", shape.q_heads, shape.kv_heads), fmt::format("{}", shape.head_dim),
         fmt::format("{}", contender.options.ranks), report::human_seconds(line.seconds.median),
         report::human_seconds(line.seconds.p10),
         fmt::format("{:.1f}", line.flops / line.seconds.median / 1e9),
         counts ? report::human_bytes(line.moved.sent_bytes) : "-",
         counts ? fmt::format("{:.3f}", bytes / line.seconds.median / 1e9) : "-",
         counts ? report::human_bytes(line.moved.peak_kv_bytes) : "-",
         fmt::format("{:.3f}", line.ratio.median), report::human_ratio(line.worst)},
        line.right  ? "ok"
        : line.open ? "OPEN"
                    : "WRONG");
}

void BenchTable::print(const std::array<std::string, 13>& cells, const std::string& verdict) {
  std::string text = fmt::format("{:<{}}", cells[0], widths_[0]);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    text += fmt::format(" {:>{}}", cells[i], widths_[i]);
  }
  output_.print("{}{}{}\n", text, verdict.empty() ? "" : "  ", verdict);
  std::fflush(nullptr);  // whoever waits for the next line reads this one
}

Json line_json(const Contender& contender, const Shape& shape, const BenchLine& line) {
  const bool counts = contender.subject.can.has(verify::Ability::counts_traffic);
  const auto counted = [&](auto value) { return counts ? Json(value) : Json(); };
  return {{"subject", contender.subject.name},
          {"tokens", shape.kv_tokens},
          {"queries", shape.q_tokens},
          {"heads", shape.q_heads},
          {"kv_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"ranks", contender.options.ranks},
          {"threads", contender.options.threads},
          {"seconds", spread_json(line.seconds)},
          {"ratio", spread_json(line.ratio)},
          {"flops_per_s", line.flops / line.seconds.median},
          {"sent_bytes", counted(line.moved.sent_bytes)},
          {"sent_bytes_per_s",
           counted(static_cast<double>(line.moved.sent_bytes) / line.seconds.median)},
          {"peak_kv_bytes", counted(line.moved.peak_kv_bytes)},
          {"peak_bytes", counted(line.moved.peak_bytes)},
          {"worst_ratio", json_number(line.worst)},
          {"right", line.right},
          {"open", line.open}};
}

}  // namespace ringlab::cli
