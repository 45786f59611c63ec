#include <fmt/format.h>

#include <string>

#include "cli/bench/bench.h"
#include "cli/bench/cpu/roofline.h"
#include "cli/line/text_table.h"
#include "cli/machine/machine.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::cli {
namespace {

Json roofline_json(const bench::Roofline& roofline) {
  Json json = {{"peaks", Json::array()}, {"bandwidths", Json::array()}, {"points", Json::array()}};
  for (const bench::Ceiling& one : roofline.ceilings) {
    json["peaks"].push_back({{"name", one.name}, {"flops_per_s", one.flops_per_s}});
  }
  for (const bench::Bandwidth& one : roofline.slopes) {
    json["bandwidths"].push_back({{"name", one.where},
                                  {"buffer_bytes", one.buffer_bytes},
                                  {"bytes_per_s", one.bytes_per_s}});
  }
  for (const bench::RooflinePoint& one : roofline.points) {
    json["points"].push_back({{"name", one.name},
                              {"flops_per_byte", one.flops_per_byte},
                              {"flops_per_s", one.flops_per_s.median},
                              {"spread", spread_json(one.flops_per_s)}});
  }
  return json;
}

void print_roofline(const bench::Roofline& roofline, Output& output) {
  TextTable table({{"one thread"}, {"flop per byte", Align::right}, {"Gflop/s", Align::right}});
  for (const bench::Ceiling& one : roofline.ceilings) {
    table.add({"peak, " + one.name, "", fmt::format("{:.1f}", one.flops_per_s * 1e-9)});
  }
  for (const bench::RooflinePoint& one : roofline.points) {
    table.add({one.name, fmt::format("{:.1f}", one.flops_per_byte),
               fmt::format("{:.1f}", one.flops_per_s.median * 1e-9)});
  }
  output.print("\n{}", table.text());
  for (const bench::Bandwidth& one : roofline.slopes) {
    output.print("reading, {}: {:.1f} GB/s\n", one.where, one.bytes_per_s * 1e-9);
  }
}

}  // namespace

std::vector<OptionSpec> bench_goal_options() {
  return {
      {"quick", "", "shorter sequences, fewer rounds", "with cpu or gpu"},
      {"only", "GOALS", "some goals: families or ids, with commas between", "with cpu or gpu"},
      {"widths", "", "no goals: the kernels at head_dim 1 to 256, odd ones too", "with cpu"},
      {"ladder", "", "no goals: the Hopper kernel's versions against each other", "with gpu"},
      {"overlap", "", "no goals: kernels and the copies of a hop beside each other", "with gpu"},
      {"machine", "FILE.json",
       "no goals: both passes by mask and length, written as a machine for simulate and plan",
       "with gpu"},
      {"timeout", "S", "seconds for each piece of work on the device (120)", "with gpu"},
      {"torch-python", "PATH", "a Python with PyTorch (RINGLAB_TORCH_PYTHON)", "with cpu or gpu"},
      {"html", "FILE", "write a report with pictures", "with cpu or gpu"}};
}

int bench_cpu(Arguments& arguments) {
  Output output(arguments);
  const bench::Plan plan = take_plan(arguments, bench::all_goals());
  const bool widths = arguments.take_switch("widths");
  const std::optional<std::string> page = widths ? std::nullopt : take_file(arguments, "html");
  if (widths) refuse_goals_beside(arguments, "--widths");
  arguments.reject_unused();
  const Processor processor = find_processor();
  Json configuration = {{"processor", processor.model},           {"threads", processor.threads},
                        {"vectors", cpu::vectors_in_use()},       {"rounds", plan.rounds},
                        {"sizes", plan.quick ? "quick" : "full"}, {"goals", plan.goals.size()}};
  if (widths) configuration.erase("goals");
  output.print_configuration(configuration);
  BenchRecord record(output, arguments, {{"configuration", configuration}});
  if (widths) {
    bench_widths(plan, record, output);
    return 0;
  }
  const std::vector<bench::GoalOutcome> outcomes =
      measure_with_progress(plan, bench::cpu_families(), record);
  print_goals(outcomes, output);
  const bench::Roofline roofline = bench::measure_roofline(plan.quick);
  print_roofline(roofline, output);
  record.keep("roofline", roofline_json(roofline));
  record.finish();
  if (page) {
    write_page(*page, configuration, {.outcomes = outcomes, .roofline = roofline}, output);
  }
  return 0;
}

}  // namespace ringlab::cli
