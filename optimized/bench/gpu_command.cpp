#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/line/endings.h"
#include "optimized/bench/goals.h"
#include "optimized/bench/gpu/gpu.h"
#include "optimized/bench/gpu/gpu_families.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

/// The deadline of one piece of work on the device; the longest takes seconds.
constexpr double kTimeoutSeconds = 120;

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / 0x1p20);
}

Json configuration_of(const GpuFacts& facts, const Plan& plan) {
  return {{"device", facts.name},
          {"compute_capability",
           fmt::format("{}.{}", facts.compute_capability / 10, facts.compute_capability % 10)},
          {"multiprocessors", facts.multiprocessors},
          {"memory", mebibytes(facts.memory_bytes)},
          {"l2_cache", mebibytes(facts.l2_bytes)},
          {"driver", "CUDA " + facts.driver},
          {"runtime", "CUDA " + facts.runtime},
          {"rounds", plan.rounds},
          {"sizes", plan.quick ? "quick" : "full"},
          {"goals", plan.goals.size()}};
}

/// The file of --machine, if it is given. Usage error unless its name ends in .json, by which
/// `simulate --machine` knows files.
std::optional<std::string> take_machine_file(Arguments& arguments) {
  std::optional<std::string> path = cli::take_file(arguments, "machine");
  if (path && !path->ends_with(".json")) {
    throw_usage_error({"--machine", "a file whose name ends in .json", *path,
                       "`simulate --machine` knows files by that."});
  }
  return path;
}

/// The device's clock before and after a run; if it fell, the figures are in doubt.
struct Clocks {
  double before_hz = 0, after_hz = 0;

  Json json() const {
    return {{"before_hz", cli::json_number(before_hz)}, {"after_hz", cli::json_number(after_hz)}};
  }
};

/// A measurement in place of goals, and the option that asks for it.
struct WithoutGoals {
  std::string option;
  std::function<void(const GpuBench&, const Plan&, Record&, Output&)> measure;
};

/// The other measurement asked for, if any. Usage error for two, and for goals beside one.
std::optional<WithoutGoals> take_other(Arguments& arguments) {
  std::vector<WithoutGoals> asked;
  if (arguments.take_switch("ladder")) asked.push_back({"--ladder", measure_ladders});
  if (arguments.take_switch("overlap")) asked.push_back({"--overlap", measure_overlaps});
  if (const auto path = take_machine_file(arguments)) {
    asked.push_back({"--machine", std::bind_front(measure_machine, *path)});
  }
  if (asked.empty()) return {};
  if (asked.size() > 1) {
    throw_usage_error({asked[1].option, "no " + asked[0].option + " beside it", "both", ""});
  }
  refuse_goals_beside(arguments, asked.front().option);
  return asked.front();
}

int measure_gpu(Arguments& arguments) {
  Output output(arguments);
  const Plan plan = take_plan(arguments, gpu_goals());
  const std::optional<WithoutGoals> other = take_other(arguments);
  const double timeout_s = arguments.take_real("timeout", kTimeoutSeconds, 1e-6, 1e9);
  arguments.reject_unused();
  const std::unique_ptr<Gpu> gpu =
      with_deadline([timeout_s] { return open_gpu(timeout_s); }, {timeout_s, cli::leave_stuck});
  Json configuration = configuration_of(gpu->facts(), plan);
  if (other) configuration.erase("goals");
  output.print_configuration(configuration);
  Record record(output, arguments, {{"configuration", configuration}});
  Clocks clocks{.before_hz = gpu->clock_hz()};
  const GpuBench bench{.gpu = *gpu};
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
  const std::vector<GoalOutcome> outcomes =
      measure_with_progress(plan, gpu_families(bench), record);
  finish();
  print_goals(outcomes, output);
  output.print("\nclock of the multiprocessors: {:.0f} MHz before, {:.0f} MHz after\n",
               clocks.before_hz * 1e-6, clocks.after_hz * 1e-6);
  return 0;
}

}  // namespace

cli::Command gpu_command() {
  cli::Command command{"gpu", "goals of the first CUDA device, beside cuDNN and PyTorch"};
  command.options = plan_options();
  command.options.insert(
      command.options.end(),
      {{"ladder", "", "no goals: the Hopper kernel's versions against each other"},
       {"overlap", "", "no goals: kernels and the copies of a hop beside each other"},
       {"machine", "FILE.json",
        "no goals: both passes by mask and length, written as a machine for simulate and plan"},
       {"timeout", "S", "seconds for each piece of work on the device (120)"}});
  command.examples = {"ringlab_goals gpu --only G1,G2 --json gpu.json",
                      "ringlab_goals gpu --ladder", "ringlab_goals gpu --overlap --quick",
                      "ringlab_goals gpu --machine here.json"};
  command.more = "Goals and how they are measured: docs/gpu.md.";
  command.run = measure_gpu;
  return command;
}

}  // namespace ringlab::bench
