#include "cli/bench_cpu.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/bench/families.h"
#include "cli/bench/page.h"
#include "cli/bench/roofline.h"
#include "cli/build_info.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "optimized/cpu/vectors.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

using bench::Outcome;
using bench::Sense;
using bench::Spread;

Json spread_json(const Spread& spread) {
  return {{"p10", json_number(spread.p10)}, {"p90", json_number(spread.p90)}};
}

Json outcome_json(const Outcome& outcome) {
  const bench::Goal& goal = outcome.goal;
  Json record = {{"id", goal.id}, {"what", goal.what}, {"unit", goal.unit}};
  record["value"] = outcome.value ? json_number(outcome.value->median) : Json();
  record[goal.sense == Sense::at_least ? "at_least" : "at_most"] = goal.bound;
  record["target"] = goal.target;
  record["met"] = bench::verdict_text(outcome);
  record["spread"] = outcome.value ? spread_json(*outcome.value) : Json();
  if (!outcome.reason.empty()) record[outcome.value ? "left_out" : "reason"] = outcome.reason;
  for (const auto& [name, value] : outcome.beside) {
    record["beside"][name] = spread_json(value);
    record["beside"][name]["value"] = json_number(value.median);
  }
  return record;
}

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

std::string limit_text(const bench::Goal& goal) {
  return fmt::format("{} {:.2f}", goal.sense == Sense::at_least ? "≥" : "≤", goal.bound);
}

void print_goals(const std::vector<Outcome>& outcomes, Output& output) {
  TextTable table({{"goal"},
                   {"median (p10 to p90)", Align::right},
                   {"asked for", Align::right},
                   {"target", Align::right},
                   {"reached"},
                   {"what"}});
  for (const Outcome& one : outcomes) {
    const std::string value = one.value
                                  ? fmt::format("{:.3f} ({:.3f} to {:.3f})", one.value->median,
                                                one.value->p10, one.value->p90)
                                  : "-";
    table.add({one.goal.id, value, limit_text(one.goal), fmt::format("{:.2f}", one.goal.target),
               bench::verdict_text(one), one.goal.what});
  }
  output.print("\n{}", table.text());
  std::string last;  // one reason often stands for many goals
  for (const Outcome& one : outcomes) {
    if (one.reason.empty() || one.reason == last) continue;
    output.print("{}{}: {}\n", last.empty() ? "\n" : "", one.goal.id, one.reason);
    last = one.reason;
  }
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

/// The programs of peers lie beside this one.
std::string folder_of_this_program() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return ignored ? "." : program.parent_path().string();
}

bench::Plan take_plan(Arguments& arguments) {
  bench::Plan plan;
  plan.quick = arguments.take_switch("quick");
  plan.rounds = static_cast<int>(arguments.take_integer("rounds", plan.quick ? 5 : 11, 3, 1000));
  const std::optional<std::string> only = arguments.take_text("only");
  plan.goals = only ? bench::choose_goals(*only) : bench::all_goals();
  plan.peer_folder = folder_of_this_program();
  const char* const known = std::getenv("RINGLAB_TORCH_PYTHON");
  plan.torch_python = arguments.take_text("torch-python").value_or(known ? known : "");
  return plan;
}

std::vector<Outcome> measure_with_progress(const bench::Plan& plan) {
  constexpr int kSteps = 1000;
  Progress bar("goals");
  const auto start = std::chrono::steady_clock::now();
  return bench::measure(plan, [&](double share, const std::string& family) {
    const double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string left =
        share > 0.02 ? fmt::format("{:.0f} s left, ", passed * (1 - share) / share) : "";
    bar.update(static_cast<int>(kSteps * share), kSteps, left + family);
  });
}

void write_page(const std::string& path, const Json& configuration,
                const std::vector<Outcome>& outcomes, const bench::Roofline& roofline) {
  const BuildInfo build = build_info();
  bench::BenchReport report{.configuration = {},
                            .build = fmt::format("{} · {} · {} · {}", build.version, build.compiler,
                                                 build.build_type, build.flags),
                            .outcomes = outcomes,
                            .roofline = roofline};
  for (const auto& [name, value] : configuration.items()) {
    report.configuration.emplace_back(name,
                                      value.is_string() ? value.get<std::string>() : value.dump());
  }
  io::write_file(path, bench::bench_page(report));
}

}  // namespace

std::vector<OptionSpec> bench_cpu_options() {
  return {{"quick", "", "shorter sequences, fewer rounds", "with cpu"},
          {"only", "GOALS", "some goals: families or ids, with commas between", "with cpu"},
          {"torch-python", "PATH", "a Python with PyTorch (RINGLAB_TORCH_PYTHON)", "with cpu"},
          {"html", "FILE", "write a report with pictures", "with cpu"}};
}

int bench_cpu(Arguments& arguments) {
  Output output(arguments);
  const bench::Plan plan = take_plan(arguments);
  const std::optional<std::string> page = arguments.take_text("html");
  arguments.reject_unused();
  if (page) check_file_name("html", *page);
  if (page) check_writable("html", *page);
  const Processor processor = find_processor();
  const Json configuration = {
      {"processor", processor.model},           {"threads", processor.threads},
      {"vectors", cpu::vectors_in_use()},       {"rounds", plan.rounds},
      {"sizes", plan.quick ? "quick" : "full"}, {"goals", plan.goals.size()}};
  output.print_configuration(configuration);
  const std::vector<Outcome> outcomes = measure_with_progress(plan);
  print_goals(outcomes, output);
  const bench::Roofline roofline = bench::measure_roofline(plan.quick ? 3 : 7);
  print_roofline(roofline, output);
  Json goals = Json::array();
  for (const Outcome& one : outcomes) goals.push_back(outcome_json(one));
  output.finish(
      "bench",
      {{"configuration", configuration}, {"goals", goals}, {"roofline", roofline_json(roofline)}});
  if (page) {
    write_page(*page, configuration, outcomes, roofline);
    output.print("\nreport in {}\n", *page);
  }
  return 0;
}

}  // namespace ringlab::cli
