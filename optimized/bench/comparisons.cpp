// Measurements of `ringlab_goals` in place of goals: every head_dim, the versions of a kernel,
// kernels under copies, speeds for a machine's file.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <vector>

#include "cli/line/progress.h"
#include "cli/line/spread.h"
#include "cli/line/text_table.h"
#include "optimized/bench/cpu/widths.h"
#include "optimized/bench/device_machine.h"
#include "optimized/bench/goals.h"
#include "optimized/bench/gpu/gpu_comparisons.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::bench {
namespace {

Json widths_json(const Widths& widths) {
  Json json = {{"head_dims", widths.head_dims}, {"kernels", Json::array()}};
  for (const WidthKernel& kernel : widths.kernels) {
    Json one = {{"name", kernel.name}, {"peak", kernel.peak}, {"shares", Json::array()}};
    for (const Spread& share : kernel.shares) {
      one["shares"].push_back({{"value", share.median}, {"spread", cli::spread_json(share)}});
    }
    json["kernels"].push_back(one);
  }
  return json;
}

void print_widths(const Widths& widths, Output& output) {
  std::vector<cli::Column> columns = {{"head_dim", cli::Align::right}};
  for (const WidthKernel& kernel : widths.kernels) {
    columns.push_back({kernel.name, cli::Align::right});
  }
  cli::TextTable table(columns);
  for (std::size_t i = 0; i < widths.head_dims.size(); ++i) {
    std::vector<std::string> row = {fmt::format("{}", widths.head_dims[i])};
    for (const WidthKernel& kernel : widths.kernels) {
      row.push_back(fmt::format("{:.2f}", kernel.shares[i].median));
    }
    table.add(row);
  }
  output.print("\n{}", table.text());
  for (const WidthKernel& kernel : widths.kernels) {
    output.print("{}: share of the peak, {}\n", kernel.name, kernel.peak);
  }
}

/// A series of cases: the label of its bar, rounds for each, and the part of the record they fill.
struct MeasuredCases {
  const char* label;
  int rounds;
  const char* part;
  Record& record;
};

/// Measures `cases` one after the other, with a bar; `part` of the record grows with each.
template <class Case, class Measure, class ToJson>
auto measure_each(const std::vector<Case>& cases, const Measure& measure, const ToJson& to_json,
                  const MeasuredCases& how) {
  std::atomic<std::int64_t> done = 0;
  std::vector<decltype(measure(cases.front(), TimingOptions()))> measured;
  Json json = Json::array();
  const cli::Progress progress(how.label, {&done, std::ssize(cases) * how.rounds});
  for (const Case& one : cases) {
    measured.push_back(measure(one, {how.rounds, [&](int, int) { ++done; }}));
    json.push_back(to_json(measured.back()));
    how.record.keep(how.part, json);
  }
  return measured;
}

Json ladder_json(const Ladder& ladder) {
  Json json = {{"pass", pass_name(ladder.attention.pass)},
               {"mask", ladder.attention.mask},
               {"tokens", ladder.attention.tokens},
               {"head_dim", ladder.attention.head_dim},
               {"versions", Json::array()}};
  for (const LadderRung& rung : ladder.rungs) {
    Json one = {{"name", rung.name}, {"what", rung.what}, {"step", rung.is_step}};
    if (rung.failure.empty()) {
      one["flops_per_s"] = cli::spread_json(rung.flops_per_s);
      one["speed"] = cli::spread_json(rung.speed);
    } else {
      one["failure"] = rung.failure;
    }
    json["versions"].push_back(one);
  }
  return json;
}

void print_ladder(const Ladder& ladder, Output& output) {
  const GpuCase& one = ladder.attention;
  cli::TextTable table({{fmt::format("{}, {}", pass_name(one.pass), one.text())},
                        {"TFLOP/s", cli::Align::right},
                        {"speed / kernel (p10 to p90)", cli::Align::right},
                        {"what it adds, or changes"}});
  for (const LadderRung& rung : ladder.rungs) {
    const std::string name = rung.is_step ? "+ " + rung.name : "kernel, " + rung.name;
    if (!rung.failure.empty()) {
      table.add({name, "-", "-", rung.failure});
      continue;
    }
    table.add({name, fmt::format("{:.0f}", rung.flops_per_s.median * 1e-12),
               cli::spread_text(rung.speed, 3), rung.what});
  }
  output.print("\n{}", table.text());
}

Json overlap_json(const Overlap& one) {
  Json json = {{"copies_by", copies_text(one.option)},
               {"stays", one.option.grid.stays},
               {"left_free", one.option.grid.left_free},
               {"nccl_blocks", one.option.nccl_blocks}};
  if (!one.failure.empty()) {
    json["failure"] = one.failure;
    return json;
  }
  json["kernel_alone"] = cli::spread_json(one.kernel_alone);
  json["kernel_under_copies"] = cli::spread_json(one.kernel_under_copies);
  json["copies_alone_bytes_per_s"] = cli::spread_json(one.copies_alone_bytes_per_s);
  json["copies_under_kernel_bytes_per_s"] = cli::spread_json(one.copies_under_kernel_bytes_per_s);
  return json;
}

Json speeds_json(const PassSpeeds& one) {
  Json json = {{"mask", one.attention.mask},
               {"tokens", one.attention.tokens},
               {"head_dim", one.attention.head_dim}};
  if (!one.failure.empty()) {
    json["failure"] = one.failure;
    return json;
  }
  json["forward_flops_per_s"] = one.forward;
  json["backward_flops_per_s"] = one.backward;
  return json;
}

void print_speeds(const std::vector<PassSpeeds>& speeds, Output& output) {
  cli::TextTable table({{"attention, bf16"},
                        {"forward, TFLOP/s", cli::Align::right},
                        {"backward, TFLOP/s", cli::Align::right}});
  const auto tera = [](double flops) { return fmt::format("{:.0f}", flops * 1e-12); };
  for (const PassSpeeds& one : speeds) {
    if (one.failure.empty()) {
      table.add({one.attention.text(), tera(one.forward), tera(one.backward)});
    } else {
      table.add({one.attention.text(), "-", one.failure});
    }
  }
  output.print("\n{}", table.text());
}

void print_overlaps(const std::vector<Overlap>& overlaps, Output& output) {
  cli::TextTable table({{"copies by"},
                        {"the kernel"},
                        {"kernel alone", cli::Align::right},
                        {"kernel under copies", cli::Align::right},
                        {"copies, GB/s", cli::Align::right},
                        {"under the kernel", cli::Align::right}});
  for (const Overlap& one : overlaps) {
    const std::string grid = text_of(one.option.grid);
    if (!one.failure.empty()) {
      table.add({copies_text(one.option), grid, "-", "-", "-", "-"});
      continue;
    }
    const auto share = [](const Spread& speed) { return fmt::format("{:.3f}", speed.median); };
    const auto rate = [](const Spread& speed) {
      return fmt::format("{:.1f}", speed.median * 1e-9);
    };
    table.add({copies_text(one.option), grid, share(one.kernel_alone),
               share(one.kernel_under_copies), rate(one.copies_alone_bytes_per_s),
               rate(one.copies_under_kernel_bytes_per_s)});
  }
  output.print("\n{}", table.text());
  output.print("Kernels: speed over that of the kernel alone that stays on all multiprocessors.\n");
  for (const Overlap& one : overlaps) {
    if (one.failure.empty()) continue;
    output.print("{}, {}: {}\n", copies_text(one.option), text_of(one.option.grid), one.failure);
  }
}

}  // namespace

void measure_all_widths(const Plan& plan, Record& record, Output& output) {
  WidthOptions options{.rounds = plan.rounds};
  if (plan.quick) options.tokens = 512;
  std::atomic<std::int64_t> done = 0;
  constexpr std::int64_t kWhole = 1000;
  options.progress = [&](double share) { done = std::llround(share * kWhole); };
  const Widths widths = [&] {
    const cli::Progress progress("timing every head_dim", {&done, kWhole});
    return measure_widths(options);
  }();
  print_widths(widths, output);
  record.keep("widths", widths_json(widths));
  record.finish();
}

void measure_ladders(const GpuBench& bench, const Plan& plan, Record& record, Output& output) {
  const auto measure = [&](const GpuCase& one, const TimingOptions& timing) {
    return measure_ladder(bench, one, timing);
  };
  const std::vector<Ladder> ladders =
      measure_each(ladder_cases(plan.quick), measure, ladder_json,
                   {"timing versions of the kernel", plan.rounds, "ladders", record});
  for (const Ladder& ladder : ladders) print_ladder(ladder, output);
}

void measure_overlaps(const GpuBench& bench, const Plan& plan, Record& record, Output& output) {
  const GpuCase attention{.tokens = plan.quick ? 4096 : 8192};
  const auto measure = [&](const OverlapOption& row, const TimingOptions& timing) {
    return measure_overlap(bench, row, attention, timing);
  };
  print_overlaps(measure_each(overlap_options(), measure, overlap_json,
                              {"timing kernels under copies", plan.rounds, "overlaps", record}),
                 output);
}

void measure_machine(const std::string& path, const GpuBench& bench, const Plan& plan,
                     Record& record, Output& output) {
  const auto measure = [&](const GpuCase& one, const TimingOptions& timing) {
    return measure_passes(bench, one, timing);
  };
  const std::vector<PassSpeeds> speeds =
      measure_each(speed_cases(plan.quick), measure, speeds_json,
                   {"timing both passes", plan.rounds, "speeds", record});
  print_speeds(speeds, output);
  const std::string name = std::filesystem::path(path).stem().string();
  output.files().write(path, device_machine(name, bench.gpu.facts(), speeds,
                                            measure_figures(bench, {.rounds = plan.rounds})));
  output.write_at_the_end(
      fmt::format("wrote {}: try ringlab plan --model llama-3.1-8b "
                  "--tokens 131072 --devices 8 --machine {}",
                  path, path));
}

}  // namespace ringlab::bench
