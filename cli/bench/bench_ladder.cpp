#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/gpu/gpu_ladder.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"

namespace ringlab::cli {
namespace {

Json ladder_json(const bench::Ladder& ladder) {
  Json json = {{"mask", ladder.attention.mask},
               {"tokens", ladder.attention.tokens},
               {"head_dim", ladder.attention.head_dim},
               {"versions", Json::array()}};
  for (const bench::LadderRung& rung : ladder.rungs) {
    Json one = {{"name", rung.name}, {"what", rung.what}, {"step", rung.is_step}};
    if (rung.failure.empty()) {
      one["flops_per_s"] = spread_json(rung.flops_per_s);
      one["speed"] = spread_json(rung.speed);
    } else {
      one["failure"] = rung.failure;
    }
    json["versions"].push_back(one);
  }
  return json;
}

void print_ladder(const bench::Ladder& ladder, Output& output) {
  TextTable table({{ladder.attention.text()},
                   {"TFLOP/s", Align::right},
                   {"speed / kernel (p10 to p90)", Align::right},
                   {"what it adds, or changes"}});
  for (const bench::LadderRung& rung : ladder.rungs) {
    const std::string name = rung.is_step ? "+ " + rung.name : "kernel, " + rung.name;
    if (!rung.failure.empty()) {
      table.add({name, "-", "-", rung.failure});
      continue;
    }
    table.add({name, fmt::format("{:.0f}", rung.flops_per_s.median * 1e-12),
               fmt::format("{:.3f} ({:.3f} to {:.3f})", rung.speed.median, rung.speed.p10,
                           rung.speed.p90),
               rung.what});
  }
  output.print("\n{}", table.text());
}

}  // namespace

void bench_ladder(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                  Output& output) {
  const std::vector<bench::GpuCase> cases = bench::ladder_cases(plan.quick);
  std::atomic<std::int64_t> done = 0;
  std::vector<bench::Ladder> ladders;
  Json json = Json::array();
  {
    const Progress progress("timing versions of the kernel",
                            {&done, static_cast<std::int64_t>(cases.size()) * plan.rounds});
    for (const bench::GpuCase& one : cases) {
      const auto step = [&](int, int) { ++done; };
      ladders.push_back(bench::measure_ladder(bench, one, {plan.rounds, step}));
      json.push_back(ladder_json(ladders.back()));
      record.keep("ladders", json);
    }
  }
  for (const bench::Ladder& ladder : ladders) print_ladder(ladder, output);
}

}  // namespace ringlab::cli
