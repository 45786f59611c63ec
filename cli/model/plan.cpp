// `ringlab plan`: how many ranks a problem takes on a machine, and how they should be arranged.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cli/inputs/run_options.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/line/words.h"
#include "cli/model/executed_ranks.h"
#include "cli/model/model_options.h"
#include "cli/model/model_question.h"
#include "cli/model/plan_charts.h"
#include "cli/model/plan_model.h"
#include "cli/model/plan_reasons.h"
#include "cli/model/plan_serve.h"
#include "cli/report/human.h"
#include "reference/core/error.h"
#include "reference/model/many_ranks.h"
#include "reference/model/planner.h"

namespace ringlab::cli {
namespace {

constexpr double kMostSeconds = 1e9;
constexpr int kShownSlots = 2;  // the default of `run`
const std::vector<int> kDefaultRanks = {1, 2, 4, 8, 16, 32, 64};

// --- what is asked -------------------------------------------------------------------------------

struct PlanQuestion {
  model::Job job;
  model::Machine machine = {};
  std::vector<int> ranks = {};  ///< ascending
  model::PlanLimits limits = {};
  std::string words = {};  ///< of the command line, those that `simulate` takes too
};

std::vector<int> take_rank_counts(Arguments& arguments) {
  std::vector<int> counts;
  for (const std::string& word : arguments.take_words("ranks")) {
    counts.push_back(static_cast<int>(parse_integer("ranks", word, 1, kMostModelledRanks)));
  }
  if (counts.empty()) return kDefaultRanks;
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void check_executed(const PlanQuestion& question) {
  model::Job job = question.job;
  job.options.ranks = question.ranks.back();
  executed_ranks(job, question.machine);
}

PlanQuestion take_plan_question(Arguments& arguments) {
  PlanQuestion question{.job = take_modelled_job(arguments)};
  take_run_option(arguments, run_option("wire"), question.job.options);
  question.machine = take_machine(arguments, question.job.problem);
  question.ranks = take_rank_counts(arguments);
  question.limits.memory_bytes = question.machine.memory_bytes;
  question.limits.seconds =
      arguments.take_real("seconds", question.limits.seconds, 0, kMostSeconds);
  for (const std::vector<OptionSpec>& specs :
       {modelled_job_options(), std::vector{option_spec("wire")}, machine_options()}) {
    question.words += given_words(arguments, specs);
  }
  check_executed(question);
  return question;
}

Json configuration_of(const PlanQuestion& question, const Json& machine) {
  Json configuration = modelled_job_figures(question.job);
  configuration["wire"] = word_of(run_option("wire"), question.job.options);
  configuration["ranks"] = question.ranks;
  if (question.limits.seconds < std::numeric_limits<double>::infinity()) {
    configuration["seconds"] = question.limits.seconds;
  }
  configuration.update(machine);
  return configuration;
}

// --- the answer ----------------------------------------------------------------------------------

/// All ways of so many ranks, and the best of them that keeps the limits.
struct RankPlan {
  int ranks = 0;
  std::vector<model::Choice> ways;
  std::size_t best = 0;  ///< the best that there is where none keeps the limits
  bool holds = false;
};

/// The choice nearest to the limits: the fastest that fits into memory, else the smallest.
std::size_t nearest_choice(const std::vector<model::Choice>& ways,
                           const model::PlanLimits& limits) {
  const std::size_t best = model::best_choice(ways, {.memory_bytes = limits.memory_bytes});
  if (best < ways.size()) return best;
  const auto least = std::min_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
    return a.memory_bytes < b.memory_bytes;
  });
  return static_cast<std::size_t>(least - ways.begin());
}

std::vector<RankPlan> plans_for(const PlanQuestion& question) {
  constexpr int kSteps = 1000;  // of the bar, for each number of ranks
  Progress progress("weighing");
  std::vector<RankPlan> plans;
  for (const int ranks : question.ranks) {
    const auto tell = [&](std::size_t weighed, std::size_t all) {
      const double share = static_cast<double>(weighed) / static_cast<double>(all);
      const double done = static_cast<double>(plans.size()) + share;
      progress.update(static_cast<int>(kSteps * done),
                      kSteps * static_cast<int>(question.ranks.size()),
                      fmt::format("weighing {} ranks", ranks));
    };
    model::Job job = question.job;
    job.options.ranks = ranks;
    RankPlan plan{.ranks = ranks,
                  .ways = model::weigh_ways(job, question.machine, largest_memory, tell)};
    plan.best = model::best_choice(plan.ways, question.limits);
    plan.holds = plan.best < plan.ways.size();
    if (!plan.holds) plan.best = nearest_choice(plan.ways, question.limits);
    plans.push_back(std::move(plan));
  }
  return plans;
}

// --- what is told --------------------------------------------------------------------------------

bool has_slots(const RunOptions& way) { return !schedule_traits(way.schedule).holds_all; }

std::string way_words(const RunOptions& way) {
  std::string words = fmt::format("--ranks {} --layout {} --schedule {}", way.ranks,
                                  layout_name(way.layout), schedule_name(schedule_spec(way)));
  if (has_slots(way)) words += fmt::format(" --slots {}", way.slots);
  return words;
}

std::vector<std::string> way_cells(const model::Choice& choice) {
  const RunOptions& way = choice.options;
  return {std::string(layout_name(way.layout)),
          schedule_name(schedule_spec(way)),
          has_slots(way) ? fmt::format("{}", way.slots) : "all",
          report::human_seconds(choice.seconds),
          report::human_percent(choice.efficiency),
          report::human_bytes(choice.memory_bytes)};
}

const std::vector<Column> kWayColumns = {{"layout"},
                                         {"schedule"},
                                         {"slots", Align::right},
                                         {"time", Align::right},
                                         {"efficiency", Align::right},
                                         {"memory", Align::right}};

/// The limit that a choice misses, in words; empty for none.
std::string miss_text(const model::Choice& choice, const model::PlanLimits& limits) {
  if (static_cast<double>(choice.memory_bytes) > limits.memory_bytes) return "too much memory";
  return choice.seconds > limits.seconds ? "too slow" : "";
}

void print_plans(const std::vector<RankPlan>& plans, const model::PlanLimits& limits,
                 Output& output) {
  std::vector<Column> columns = {{"ranks", Align::right}};
  columns.insert(columns.end(), kWayColumns.begin(), kWayColumns.end());
  columns.push_back({""});
  TextTable table(columns);
  for (const RankPlan& plan : plans) {
    const model::Choice& choice = plan.ways[plan.best];
    std::vector<std::string> cells = {fmt::format("{}", plan.ranks)};
    for (std::string& cell : way_cells(choice)) cells.push_back(std::move(cell));
    cells.push_back(miss_text(choice, limits));
    table.add(std::move(cells));
  }
  output.print("{}", table.text());
}

/// Every layout and schedule with its default slots, the fastest first.
void print_ways(const RankPlan& plan, const model::PlanLimits& limits, Output& output) {
  std::vector<model::Choice> ways = plan.ways;
  std::erase_if(ways, [](const model::Choice& way) { return way.options.slots != kShownSlots; });
  std::stable_sort(ways.begin(), ways.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  std::vector<Column> columns = kWayColumns;
  columns.push_back({""});
  TextTable table(columns);
  for (const model::Choice& way : ways) {
    std::vector<std::string> cells = way_cells(way);
    cells.push_back(miss_text(way, limits));
    table.add(std::move(cells));
  }
  output.print("\nways of {} ranks with {} slots, the fastest first\n{}", plan.ranks, kShownSlots,
               table.text());
}

Json way_json(const model::Choice& choice) {
  Json json = {{"ranks", choice.options.ranks},
               {"layout", layout_name(choice.options.layout)},
               {"schedule", schedule_name(schedule_spec(choice.options))}};
  if (has_slots(choice.options)) json["slots"] = choice.options.slots;
  json["seconds"] = choice.seconds;
  json["efficiency"] = choice.efficiency;
  json["memory_bytes"] = choice.memory_bytes;
  return json;
}

Json plan_json(const RankPlan& plan) {
  Json ways = Json::array();
  for (const model::Choice& choice : plan.ways) ways.push_back(way_json(choice));
  return {{"ranks", plan.ranks},
          {"holds", plan.holds},
          {"best", way_json(plan.ways[plan.best])},
          {"ways", ways}};
}

/// Prints the reasons of the choice, its time expected on real machines, and what would change it.
void print_reasons(const PlanQuestion& question, const RankPlan& plan, Json& json, Output& output) {
  const model::Choice& choice = plan.ways[plan.best];
  model::Job job = question.job;
  job.options = choice.options;
  json["expected_seconds"] = nullptr;
  if (const auto expected = model::as_expected(question.machine, job.problem)) {
    const double seconds = model::seconds_of_many(job, *expected);
    json["expected_seconds"] = seconds;
    output.print("expected      {} on real devices\n", report::human_seconds(seconds));
  }
  json["reasons"] = Json::array();
  for (const Reason& reason : reasons_for(plan.ways, plan.best, question.limits)) {
    output.print("{:<13} {}\n", reason.part, reason.sentence);
    json["reasons"].push_back({{"part", reason.part}, {"sentence", reason.sentence}});
  }
  json["what_if"] = Json::array();
  for (const WhatIf& what :
       what_would_change(job, question.machine, choice, question.limits, largest_memory)) {
    output.print(
        "{:<13} with {}: {}{}\n", json["what_if"].empty() ? "what if" : "", what.change,
        report::human_seconds(what.seconds),
        what.same ? ""
                  : fmt::format(", and {} then with {}", report::human_seconds(what.best.seconds),
                                way_words(what.best.options)));
    json["what_if"].push_back({{"change", what.change},
                               {"seconds", what.seconds},
                               {"same_choice", what.same},
                               {"best", way_json(what.best)}});
  }
}

[[noreturn]] void refuse_all(const PlanQuestion& question, const std::vector<RankPlan>& plans) {
  const model::Choice& last = plans.back().ways[plans.back().best];
  const bool memory = static_cast<double>(last.memory_bytes) > question.limits.memory_bytes;
  throw_environment_error(
      {"plan",
       memory ? fmt::format("a number of ranks that fit into {:.4g} GB each",
                            question.limits.memory_bytes / 1e9)
              : fmt::format("a number of ranks that take {}",
                            report::human_seconds(question.limits.seconds)),
       memory ? fmt::format("{:.4g} GB with {} ranks", static_cast<double>(last.memory_bytes) / 1e9,
                            last.options.ranks)
              : fmt::format("{} with {}", report::human_seconds(last.seconds), last.options.ranks),
       "Ask for more ranks (--ranks), another machine, or less."});
}

using PlanFunction = int (*)(Arguments&);

int run_plan(Arguments& arguments) {
  if (arguments.given("model")) {
    return arguments.take_choice<PlanFunction>(
        "phase", plan_model,
        {{"train", plan_model}, {"prefill", plan_prefill}, {"decode", plan_decode}})(arguments);
  }
  Output output(arguments);
  const PlanQuestion question = take_plan_question(arguments);
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  output.print_configuration(configuration_of(question, machine_figures(question.machine)));
  const std::vector<RankPlan> plans = plans_for(question);
  Json document = {{"configuration", configuration_of(question, machine_json(question.machine))},
                   {"plans", Json::array()}};
  for (const RankPlan& plan : plans) document["plans"].push_back(plan_json(plan));
  print_plans(plans, question.limits, output);
  const auto chosen =
      std::find_if(plans.begin(), plans.end(), [](const RankPlan& plan) { return plan.holds; });
  if (chosen == plans.end()) {
    document["choice"] = nullptr;
    output.finish("plan", document, kNoResults);  // the refusal has the code
    refuse_all(question, plans);
  }
  const model::Choice& choice = chosen->ways[chosen->best];
  document["choice"] = way_json(choice);
  if (chosen->ways.size() > 1) print_ways(*chosen, question.limits, output);
  output.print("\nchoice        {} {}, the fewest that keep the limits\n", chosen->ranks,
               chosen->ranks == 1 ? "rank" : "ranks");
  output.print("options       {}\n", way_words(choice.options));
  print_reasons(question, *chosen, document["choice"], output);
  output.print("look at it    ringlab simulate{} {}\n", question.words, way_words(choice.options));
  if (html) {
    model::Job job = question.job;
    job.options = choice.options;
    output.show(*html, way_words(choice.options),
                drawn_plan(job, question.machine, question.limits, choice));
  }
  return output.finish("plan", document);
}

}  // namespace

Command plan_command() {
  Command command{"plan", "how many ranks a problem takes on a machine, and how to arrange them"};
  command.options =
      model_options({{"ranks", "P,P,...", "numbers of ranks to weigh (1,2,4,8,16,32,64)"},
                     {"seconds", "X", "the longest time that it may take"},
                     option_spec("wire")},
                    plan_model_options());
  const auto html = std::ranges::find(command.options, "html", &OptionSpec::name);
  html->applies.clear();  // a page is drawn with --model and without
  command.examples = {
      "ringlab plan --tokens 1048576 --backward",
      "ringlab plan --tokens 1048576 --machine h100 --memory 20 --seconds 2",
      "ringlab plan --tokens 4194304 --ranks 8,16,32 --json plan.json",
      "ringlab plan --model llama-3.1-8b --tokens 1048576 --devices 64 --machine h100",
      "ringlab plan --model llama-3.1-8b --phase prefill --tokens 4096 --cached 1048576",
      "ringlab plan --model llama-3.1-8b --phase decode --tokens 1048576 --sequences 4",
  };
  command.more =
      "Layouts, schedules and slots are executed on a model of the machine (docs/simulate.md); "
      "the\n"
      "choice is the fewest ranks that fit --memory and --seconds. Exit code 4 where none does. "
      "With\n"
      "--model it is the fastest split of a training step, a prefill or a decode that fits "
      "(docs/plan.md).";
  command.run = run_plan;
  return command;
}

}  // namespace ringlab::cli
