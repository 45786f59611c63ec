#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/line/build_info.h"
#include "cli/line/output.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/machine/findings.h"
#include "property_tests/plugins/child_process.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

using bench::GoalOutcome;
using bench::Sense;

constexpr const char* kBench = "bench";

Json outcome_json(const GoalOutcome& outcome) {
  const bench::Goal& goal = outcome.goal;
  Json record = {{"id", goal.id}, {"what", goal.what}, {"unit", goal.unit}};
  record["value"] = outcome.value ? json_number(outcome.value->median) : Json();
  record[goal.sense == Sense::at_least ? "at_least" : "at_most"] = goal.bound;
  record["target"] = goal.target;
  record["met"] = bench::verdict_text(outcome);
  record["spread"] = outcome.value ? spread_json(*outcome.value) : Json();
  if (!outcome.reason.empty()) record[outcome.value ? "left_out" : "reason"] = outcome.reason;
  if (!outcome.subject.empty()) record["subject"] = outcome.subject;
  for (const auto& [name, value] : outcome.beside) {
    record["beside"][name] = spread_json(value);
    record["beside"][name]["value"] = json_number(value.median);
  }
  return record;
}

std::string limit_text(const bench::Goal& goal) {
  return fmt::format("{} {:.2f}", goal.sense == Sense::at_least ? "≥" : "≤", goal.bound);
}

}  // namespace

BenchRecord::BenchRecord(Output& output, const Arguments& arguments, const Json& head)
    : output_(output) {
  document_["date"] = utc_now();
  document_["words"] = arguments.words();
  document_["machine"] = machine_json(build_info(), find_machine());
  document_.update(head);
}

void BenchRecord::keep(const std::string& part, const Json& value) {
  document_[part] = value;
  output_.keep(kBench, document_);
}

void BenchRecord::finish() {
  document_["complete"] = true;
  output_.finish(kBench, document_);
}

std::string spread_text(const bench::Spread& spread, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", spread.median, digits, spread.p10, digits,
                     spread.p90, digits);
}

Json spread_json(const bench::Spread& spread) {
  return {{"median", json_number(spread.median)},
          {"p10", json_number(spread.p10)},
          {"p90", json_number(spread.p90)}};
}

Json goals_json(const std::vector<GoalOutcome>& outcomes) {
  Json goals = Json::array();
  for (const GoalOutcome& one : outcomes) goals.push_back(outcome_json(one));
  return goals;
}

bench::Plan take_plan(Arguments& arguments, const std::vector<bench::Goal>& goals) {
  bench::Plan plan;
  plan.quick = arguments.take_switch("quick");
  plan.rounds = static_cast<int>(arguments.take_integer("rounds", plan.quick ? 5 : 11, 3, 1000));
  const std::optional<std::string> only = arguments.take_text("only");
  plan.goals = only ? bench::choose_goals(*only, goals) : goals;
  plan.peer_folder = plugins::program_folder();
  const char* const known = std::getenv("RINGLAB_TORCH_PYTHON");
  plan.torch_python = arguments.take_text("torch-python").value_or(known ? known : "");
  return plan;
}

void refuse_goals_beside(const Arguments& arguments, const std::string& option) {
  if (!arguments.given("only")) return;
  throw_usage_error({option, "no --only beside it", "--only", "It measures no goals."});
}

std::vector<GoalOutcome> measure_with_progress(const bench::Plan& plan,
                                               const std::vector<bench::GoalFamily>& families,
                                               BenchRecord& record) {
  constexpr int kSteps = 1000;
  Progress bar("goals");
  const auto start = std::chrono::steady_clock::now();
  const auto show = [&](double share, const std::string& family) {
    const double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string left =
        share > 0.02 ? fmt::format("{:.0f} s left, ", passed * (1 - share) / share) : "";
    bar.update(static_cast<int>(kSteps * share), kSteps, left + family);
  };
  return bench::measure(plan, show, families, [&](const std::vector<GoalOutcome>& so_far) {
    record.keep("goals", goals_json(so_far));
  });
}

void print_goals(const std::vector<GoalOutcome>& outcomes, Output& output) {
  TextTable table({{"goal"},
                   {"median (p10 to p90)", Align::right},
                   {"asked for", Align::right},
                   {"target", Align::right},
                   {"reached"},
                   {"what"}});
  for (const GoalOutcome& one : outcomes) {
    const std::string value = one.value ? spread_text(*one.value, 3) : "-";
    table.add({one.goal.id, value, limit_text(one.goal), fmt::format("{:.2f}", one.goal.target),
               bench::verdict_text(one), one.goal.what});
  }
  output.print("\n{}", table.text());
  std::string last;  // one reason often stands for many goals
  for (const GoalOutcome& one : outcomes) {
    if (one.reason.empty() || one.reason == last) continue;
    output.print("{}{}: {}\n", last.empty() ? "\n" : "", one.goal.id, one.reason);
    last = one.reason;
  }
}

void print_figures(const bench::FigureTable& figures, Output& output) {
  if (figures.rows.empty()) return;
  std::vector<Column> columns = {{"goal"}};
  for (const std::string& name : figures.names) columns.push_back({name, Align::right});
  TextTable table(columns);
  for (const bench::FigureTable::Row& row : figures.rows) {
    std::vector<std::string> cells = {row.id};
    cells.insert(cells.end(), row.cells.begin(), row.cells.end());
    table.add(std::move(cells));
  }
  output.print("\n{}", table.text());
}

void write_page(const std::string& path, const Json& configuration, bench::BenchReport report,
                Output& output) {
  const BuildInfo build = build_info();
  report.build = fmt::format("{} · {} · {} · {}", build.version, build.compiler, build.build_type,
                             build.flags);
  for (const auto& [name, value] : configuration.items()) {
    report.configuration.emplace_back(name, configuration_text(value));
  }
  io::write_file(path, bench::bench_page(report));
  output.print("\nreport in {}\n", path);
}

}  // namespace ringlab::cli
