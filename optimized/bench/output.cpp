#include "cli/line/output.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "cli/line/progress.h"
#include "cli/line/spread.h"
#include "cli/line/text_table.h"
#include "optimized/bench/goals.h"
#include "property_tests/plugins/child_process.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

Json outcome_json(const GoalOutcome& outcome) {
  const Goal& goal = outcome.goal;
  Json record = {{"id", goal.id}, {"what", goal.what}, {"unit", goal.unit}};
  record["value"] = outcome.value ? cli::json_number(outcome.value->median) : Json();
  record[goal.sense == Sense::at_least ? "at_least" : "at_most"] = goal.bound;
  record["target"] = goal.target;
  record["met"] = verdict_text(outcome);
  record["spread"] = outcome.value ? cli::spread_json(*outcome.value) : Json();
  if (!outcome.reason.empty()) record[outcome.value ? "left_out" : "reason"] = outcome.reason;
  if (!outcome.subject.empty()) record["subject"] = outcome.subject;
  for (const auto& [name, value] : outcome.beside) {
    record["beside"][name] = cli::spread_json(value);
    record["beside"][name]["value"] = cli::json_number(value.median);
  }
  return record;
}

std::string limit_text(const Goal& goal) {
  return fmt::format("{} {:.2f}", goal.sense == Sense::at_least ? "≥" : "≤", goal.bound);
}

Json goals_json(const std::vector<GoalOutcome>& outcomes) {
  Json goals = Json::array();
  for (const GoalOutcome& one : outcomes) goals.push_back(outcome_json(one));
  return goals;
}

void print_figures(const FigureTable& figures, Output& output) {
  if (figures.rows.empty()) return;
  std::vector<cli::Column> columns = {{"goal"}};
  for (const std::string& name : figures.names) columns.push_back({name, cli::Align::right});
  cli::TextTable table(columns);
  for (const FigureTable::Row& row : figures.rows) {
    std::vector<std::string> cells = {row.id};
    cells.insert(cells.end(), row.cells.begin(), row.cells.end());
    table.add(std::move(cells));
  }
  output.print("\n{}", table.text());
}

}  // namespace

std::vector<OptionSpec> plan_options() {
  return {{"quick", "", "shorter sequences, fewer rounds"},
          {"only", "GOALS", "some goals: families or ids, with commas between"},
          {"rounds", "R", "measured rounds, each contender once per round (11; with --quick 5)"},
          {"torch-python", "PATH", "a Python with PyTorch (RINGLAB_TORCH_PYTHON)"},
          cli::json_option()};
}

Plan take_plan(Arguments& arguments, const std::vector<Goal>& goals) {
  Plan plan;
  plan.quick = arguments.take_switch("quick");
  plan.rounds = static_cast<int>(arguments.take_integer("rounds", plan.quick ? 5 : 11, 3, 1000));
  const std::optional<std::string> only = arguments.take_text("only");
  plan.goals = only ? choose_goals(*only, goals) : goals;
  plan.peer_folder = plugins::program_folder();
  const char* const known = std::getenv("RINGLAB_TORCH_PYTHON");
  plan.torch_python = arguments.take_text("torch-python").value_or(known ? known : "");
  return plan;
}

void refuse_goals_beside(const Arguments& arguments, const std::string& option) {
  if (!arguments.given("only")) return;
  throw_usage_error({option, "no --only beside it", "--only", "It measures no goals."});
}

std::vector<GoalOutcome> measure_with_progress(const Plan& plan,
                                               const std::vector<GoalFamily>& families,
                                               Record& record) {
  constexpr int kSteps = 1000;
  cli::Progress bar("goals");
  const auto start = std::chrono::steady_clock::now();
  const auto show = [&](double share, const std::string& family) {
    const double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string left =
        share > 0.02 ? fmt::format("{:.0f} s left, ", passed * (1 - share) / share) : "";
    bar.update(static_cast<int>(kSteps * share), kSteps, left + family);
  };
  return measure(plan, show, families, [&](const std::vector<GoalOutcome>& so_far) {
    record.keep("goals", goals_json(so_far));
  });
}

void print_goals(const std::vector<GoalOutcome>& outcomes, Output& output) {
  cli::TextTable table({{"goal"},
                        {"median (p10 to p90)", cli::Align::right},
                        {"asked for", cli::Align::right},
                        {"target", cli::Align::right},
                        {"reached"},
                        {"what"}});
  for (const GoalOutcome& one : outcomes) {
    const std::string value = one.value ? cli::spread_text(*one.value, 3) : "-";
    table.add({one.goal.id, value, limit_text(one.goal), fmt::format("{:.2f}", one.goal.target),
               verdict_text(one), one.goal.what});
  }
  output.print("\n{}", table.text());
  std::string last;  // one reason often stands for many goals
  for (const GoalOutcome& one : outcomes) {
    if (one.reason.empty() || one.reason == last) continue;
    output.print("{}{}: {}\n", last.empty() ? "\n" : "", one.goal.id, one.reason);
    last = one.reason;
  }
  print_figures(figures_beside(outcomes), output);
}

}  // namespace ringlab::bench
