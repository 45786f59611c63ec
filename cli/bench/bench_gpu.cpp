#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/gpu/gpu.h"
#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/gpu/gpu_goals.h"
#include "cli/inputs/run_options.h"
#include "cli/line/endings.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

/// The deadline of one piece of work on the device; the longest takes seconds.
constexpr double kTimeoutSeconds = 120;

Json configuration_of(const bench::GpuFacts& facts, const bench::Plan& plan) {
  return {{"device", facts.name},
          {"compute_capability",
           fmt::format("{}.{}", facts.compute_capability / 10, facts.compute_capability % 10)},
          {"multiprocessors", facts.multiprocessors},
          {"memory", report::human_bytes(facts.memory_bytes)},
          {"l2_cache", report::human_bytes(facts.l2_bytes)},
          {"driver", "CUDA " + facts.driver},
          {"runtime", "CUDA " + facts.runtime},
          {"rounds", plan.rounds},
          {"sizes", plan.quick ? "quick" : "full"},
          {"goals", plan.goals.size()}};
}

/// The device's clock before and after a run; if it fell, the figures are in doubt.
struct Clocks {
  double before_hz = 0, after_hz = 0;

  Json json() const {
    return {{"before_hz", json_number(before_hz)}, {"after_hz", json_number(after_hz)}};
  }
};

/// A measurement of `bench gpu` in place of goals, and the option that asks for it.
struct WithoutGoals {
  std::string option;
  std::function<void(const bench::GpuBench&, const bench::Plan&, BenchRecord&, Output&)> measure;
};

/// The other measurement asked for, if any. Usage error for two, and for goals beside one.
std::optional<WithoutGoals> take_other(Arguments& arguments) {
  std::vector<WithoutGoals> asked;
  if (arguments.take_switch("ladder")) asked.push_back({"--ladder", bench_ladder});
  if (arguments.take_switch("overlap")) asked.push_back({"--overlap", bench_overlap});
  if (const auto path = take_machine_file(arguments, "machine")) {
    asked.push_back({"--machine", std::bind_front(bench_machine, *path)});
  }
  if (asked.empty()) return {};
  if (asked.size() > 1) {
    throw_usage_error({asked[1].option, "no " + asked[0].option + " beside it", "both", ""});
  }
  refuse_goals_beside(arguments, asked.front().option);
  return asked.front();
}

}  // namespace

int bench_gpu(Arguments& arguments) {
  Output output(arguments);
  const bench::Plan plan = take_plan(arguments, bench::gpu_goals());
  const std::optional<WithoutGoals> other = take_other(arguments);
  const std::optional<std::string> page = other ? std::nullopt : take_file(arguments, "html");
  const double timeout_s = take_number(arguments, "timeout", kTimeoutSeconds);
  arguments.reject_unused();
  const std::unique_ptr<bench::Gpu> gpu = bench::with_deadline(
      [timeout_s] { return bench::open_gpu(timeout_s); }, {timeout_s, leave_stuck});
  Json configuration = configuration_of(gpu->facts(), plan);
  if (other) configuration.erase("goals");
  output.print_configuration(configuration);
  BenchRecord record(output, arguments, {{"configuration", configuration}});
  Clocks clocks{.before_hz = gpu->clock_hz()};
  const bench::GpuBench bench{.gpu = *gpu};
  const auto finish = [&] {
    gpu->about("");
    clocks.after_hz = gpu->clock_hz();
    record.keep("clocks", clocks.json());
    record.finish();
  };
  if (other) {
    other->measure(bench, plan, record, output);
    finish();
    return 0;
  }
  const std::vector<bench::GoalOutcome> outcomes =
      measure_with_progress(plan, bench::gpu_families(bench), record);
  finish();
  print_goals(outcomes, output);
  const bench::FigureTable figures = bench::figures_beside(outcomes);
  print_figures(figures, output);
  output.print("\nclock of the multiprocessors: {:.0f} MHz before, {:.0f} MHz after\n",
               clocks.before_hz * 1e-6, clocks.after_hz * 1e-6);
  if (page) {
    configuration["clock_mhz"] =
        fmt::format("{:.0f}, then {:.0f}", clocks.before_hz * 1e-6, clocks.after_hz * 1e-6);
    write_page(*page, configuration,
               {.title = "How near the kernels come to what the device can do",
                .outcomes = outcomes,
                .figures = figures},
               output);
  }
  return 0;
}

}  // namespace ringlab::cli
