#include <fmt/format.h>

#include <string>

#include "cli/line/text_table.h"
#include "cli/machine/machine.h"
#include "optimized/bench/cpu/roofline.h"
#include "optimized/bench/goals.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::bench {
namespace {

Json roofline_json(const Roofline& roofline) {
  Json json = {{"peaks", Json::array()}, {"bandwidths", Json::array()}, {"points", Json::array()}};
  for (const Ceiling& one : roofline.ceilings) {
    json["peaks"].push_back({{"name", one.name}, {"flops_per_s", one.flops_per_s}});
  }
  for (const Bandwidth& one : roofline.slopes) {
    json["bandwidths"].push_back({{"name", one.where},
                                  {"buffer_bytes", one.buffer_bytes},
                                  {"bytes_per_s", one.bytes_per_s}});
  }
  for (const RooflinePoint& one : roofline.points) {
    json["points"].push_back({{"name", one.name},
                              {"flops_per_byte", one.flops_per_byte},
                              {"flops_per_s", one.flops_per_s.median},
                              {"spread", cli::spread_json(one.flops_per_s)}});
  }
  return json;
}

void print_roofline(const Roofline& roofline, Output& output) {
  cli::TextTable table(
      {{"one thread"}, {"flop per byte", cli::Align::right}, {"Gflop/s", cli::Align::right}});
  for (const Ceiling& one : roofline.ceilings) {
    table.add({"peak, " + one.name, "", fmt::format("{:.1f}", one.flops_per_s * 1e-9)});
  }
  for (const RooflinePoint& one : roofline.points) {
    table.add({one.name, fmt::format("{:.1f}", one.flops_per_byte),
               fmt::format("{:.1f}", one.flops_per_s.median * 1e-9)});
  }
  output.print("\n{}", table.text());
  for (const Bandwidth& one : roofline.slopes) {
    output.print("reading, {}: {:.1f} GB/s\n", one.where, one.bytes_per_s * 1e-9);
  }
}

int measure_cpu(Arguments& arguments) {
  Output output(arguments);
  const Plan plan = take_plan(arguments, cpu_goals());
  const bool widths = arguments.take_switch("widths");
  if (widths) refuse_goals_beside(arguments, "--widths");
  arguments.reject_unused();
  const cli::Processor processor = cli::find_processor();
  Json configuration = {{"processor", processor.model},           {"threads", processor.threads},
                        {"vectors", cpu::vectors_in_use()},       {"rounds", plan.rounds},
                        {"sizes", plan.quick ? "quick" : "full"}, {"goals", plan.goals.size()}};
  if (widths) configuration.erase("goals");
  output.print_configuration(configuration);
  Record record(output, arguments, {{"configuration", configuration}});
  if (widths) {
    measure_all_widths(plan, record, output);
    return 0;
  }
  const std::vector<GoalOutcome> outcomes = measure_with_progress(plan, cpu_families(), record);
  print_goals(outcomes, output);
  const Roofline roofline = measure_roofline(plan.quick);
  print_roofline(roofline, output);
  record.keep("roofline", roofline_json(roofline));
  record.finish();
  return 0;
}

}  // namespace

cli::Command cpu_command() {
  cli::Command command{"cpu", "goals of the processor: shares of its peak, and other libraries"};
  command.options = plan_options();
  command.options.push_back(
      {"widths", "", "no goals: the kernels at head_dim 1 to 256, odd ones too"});
  command.examples = {"ringlab_goals cpu --quick", "ringlab_goals cpu --only C1,C3 --rounds 21",
                      "ringlab_goals cpu --widths --json widths.json"};
  command.more =
      "Goals and how they are measured: docs/performance.md. One that cannot be measured here is\n"
      "listed with the reason. Contenders take turns in one process; ratios are taken within a\n"
      "round. Absolute times of a shared machine are not comparable from run to run, the ratios "
      "are.";
  command.run = measure_cpu;
  return command;
}

}  // namespace ringlab::bench
