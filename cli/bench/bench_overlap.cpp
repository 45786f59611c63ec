#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/gpu/gpu_overlap.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"

namespace ringlab::cli {
namespace {

Json overlap_json(const bench::Overlap& one) {
  Json json = {{"copies_by", bench::copies_text(one.option)},
               {"stays", one.option.grid.stays},
               {"left_free", one.option.grid.left_free},
               {"nccl_blocks", one.option.nccl_blocks}};
  if (!one.failure.empty()) {
    json["failure"] = one.failure;
    return json;
  }
  json["kernel_alone"] = spread_json(one.kernel_alone);
  json["kernel_under_copies"] = spread_json(one.kernel_under_copies);
  json["copies_alone_bytes_per_s"] = spread_json(one.copies_alone_bytes_per_s);
  json["copies_under_kernel_bytes_per_s"] = spread_json(one.copies_under_kernel_bytes_per_s);
  return json;
}

void print_overlaps(const std::vector<bench::Overlap>& overlaps, Output& output) {
  TextTable table({{"copies by"},
                   {"the kernel"},
                   {"kernel alone", Align::right},
                   {"kernel under copies", Align::right},
                   {"copies, GB/s", Align::right},
                   {"under the kernel", Align::right}});
  for (const bench::Overlap& one : overlaps) {
    const std::string grid = bench::text_of(one.option.grid);
    if (!one.failure.empty()) {
      table.add({bench::copies_text(one.option), grid, "-", "-", "-", "-"});
      continue;
    }
    const auto share = [](const bench::Spread& speed) {
      return fmt::format("{:.3f}", speed.median);
    };
    const auto rate = [](const bench::Spread& speed) {
      return fmt::format("{:.1f}", speed.median * 1e-9);
    };
    table.add({bench::copies_text(one.option), grid, share(one.kernel_alone),
               share(one.kernel_under_copies), rate(one.copies_alone_bytes_per_s),
               rate(one.copies_under_kernel_bytes_per_s)});
  }
  output.print("\n{}", table.text());
  output.print("Kernels: speed over that of the kernel alone that stays on all multiprocessors.\n");
  for (const bench::Overlap& one : overlaps) {
    if (one.failure.empty()) continue;
    output.print("{}, {}: {}\n", bench::copies_text(one.option), bench::text_of(one.option.grid),
                 one.failure);
  }
}

}  // namespace

void bench_overlap(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                   Output& output) {
  const std::vector<bench::OverlapOption> rows = bench::overlap_options();
  const bench::GpuCase attention{.tokens = plan.quick ? 4096 : 8192};
  std::atomic<std::int64_t> done = 0;
  std::vector<bench::Overlap> overlaps;
  Json json = Json::array();
  {
    const Progress progress("timing kernels under copies",
                            {&done, static_cast<std::int64_t>(rows.size()) * plan.rounds});
    for (const bench::OverlapOption& row : rows) {
      const auto step = [&](int, int) { ++done; };
      overlaps.push_back(bench::measure_overlap(bench, row, attention, {plan.rounds, step}));
      json.push_back(overlap_json(overlaps.back()));
      record.keep("overlaps", json);
    }
  }
  print_overlaps(overlaps, output);
}

}  // namespace ringlab::cli
