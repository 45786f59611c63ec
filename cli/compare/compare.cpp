// `ringlab compare`: one problem, every way to it, measured by running them side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "cli/compare/pooled.h"
#include "cli/compare/ways.h"
#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "cli/report/totals.h"
#include "cli/run/run_check.h"
#include "optimized/ring/closed_forms.h"
#include "reference/attention/exact.h"
#include "reference/model/job.h"

namespace ringlab::cli {
namespace {

constexpr int kMostCompared = 64;
constexpr std::array kProblemWords = {"input",   "text",  "random",   "tokens",
                                      "queries", "heads", "kv-heads", "head-dim",
                                      "seed",    "dtype", "mask",     "scale"};

/// A way with its measured traffic, work, time and accuracy.
struct Outcome {
  Way way;
  report::RunTotals totals = {};
  double seconds = 0;
  std::int64_t pairs = 0;         ///< of all ranks and query heads
  double idle = 0;                ///< idle_share() of the pairs
  Report check = {};              ///< against the problem as it was asked
  std::int64_t stated_bytes = 0;  ///< sent, by the closed form
  std::optional<double> simulated_s = {};
};

/// Pairs of (query, key, query head) that each rank computes.
std::vector<std::int64_t> work_of(const Way& way, const Shape& shape, const RunResult& run) {
  std::vector<std::int64_t> work;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    std::int64_t heads = shape.q_heads;
    if (way.by_heads) {
      const auto at = static_cast<std::int64_t>(rank), ranks = std::ssize(run.ranks);
      heads = shape.q_heads / shape.kv_heads *
              (shape.kv_heads * (at + 1) / ranks - shape.kv_heads * at / ranks);
    }
    work.push_back(report::pairs_of(run.ranks[rank]) * heads);
  }
  return work;
}

/// The share of the ranks' time in which they would stand still, if all pairs took as long.
double idle_share(const std::vector<std::int64_t>& work) {
  const std::int64_t most = std::ranges::max(work);
  const double due = static_cast<double>(most) * static_cast<double>(work.size());
  const auto all = std::accumulate(work.begin(), work.end(), std::int64_t{0});
  return most == 0 ? 0 : 1 - static_cast<double>(all) / due;
}

std::int64_t stated_bytes(const verify::Subject& subject, const Problem& problem,
                          const RunOptions& options) {
  std::int64_t sent = 0;
  if (subject.costs) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      sent += subject.costs(problem, options, rank).sent_bytes;
    }
    return sent;
  }
  for (const auto& rank : ring::engine_costs(problem, options, Pass::forward)) {
    sent += rank.sent_bytes;
  }
  return sent;
}

/// Modelled seconds of a way of the engine; nothing for other subjects.
std::optional<double> simulated(const Way& way, const Problem& problem,
                                const model::Machine& machine) {
  if (way.subject != "optimized") return std::nullopt;
  const model::Job job{.problem = problem, .options = way.options};
  return model::simulate_job(job, model::needs_of(problem, way.options), machine).seconds;
}

struct Comparison {
  const LoadedInput& loaded;
  const ExactForward& exact;
  const model::Machine& machine;
};

Outcome outcome_of(const Way& way, const Comparison& all) {
  const verify::Subject subject =
      way.group > 0 ? pooled_subject(way.group) : verify::find_subject(way.subject);
  AttentionInput input = all.loaded.input();
  const AttentionInput asked = input;
  input.problem.mask = way.mask;
  RunOptions options = way.options;
  options.tile_queries = subject.tile_queries;
  options.tile_keys = subject.tile_keys;
  const RunResult run = subject.run(input, options);
  Outcome outcome{.way = way, .totals = report::totals_of(run), .seconds = run.seconds};
  const std::vector<std::int64_t> work = work_of(way, input.problem.shape, run);
  outcome.pairs = std::accumulate(work.begin(), work.end(), std::int64_t{0});
  outcome.idle = idle_share(work);
  outcome.check =
      compare_forward(run.output, all.exact,
                      forward_tolerance(asked, all.exact, subject.profile(asked.problem, options)));
  outcome.stated_bytes = stated_bytes(subject, input.problem, options);
  outcome.simulated_s = simulated(way, input.problem, all.machine);
  return outcome;
}

/// "within 5.6e-06", or the worst error and the share of numbers outside their bounds.
std::string answer_text(const Outcome& outcome) {
  const TensorReport& out = outcome.check.tensors.front();
  const WorstElement& worst = out.worst;
  if (outcome.check.passed() && !outcome.check.held()) return "unbounded: zeros would pass";
  if (outcome.check.passed()) {
    return fmt::format("within {:.2g}", worst.allowed);
  }
  return fmt::format(
      "off by {:.2g}, {} of numbers", std::abs(worst.got - worst.exact),
      report::human_percent(static_cast<double>(out.failed) / static_cast<double>(out.compared)));
}

void print_outcomes(const std::vector<Outcome>& outcomes, const std::string& machine,
                    Output& output) {
  TextTable table({{"way"},
                   {"sent", Align::right},
                   {"K/V on a rank", Align::right},
                   {"allocated", Align::right},
                   {"pairs", Align::right},
                   {"idle", Align::right},
                   {"time here", Align::right},
                   {"on " + machine, Align::right},
                   {"answer"}});
  for (const Outcome& outcome : outcomes) {
    table.add({outcome.way.name, report::human_bytes(outcome.totals.sent_bytes),
               report::human_bytes(outcome.totals.peak_kv_bytes),
               report::human_bytes(outcome.totals.peak_bytes), report::human_count(outcome.pairs),
               report::human_percent(outcome.idle), report::human_seconds(outcome.seconds),
               outcome.simulated_s ? report::human_seconds(*outcome.simulated_s) : "",
               answer_text(outcome)});
  }
  output.print("{}", table.text());
}

Json outcome_json(const Outcome& outcome) {
  const TensorReport& out = outcome.check.tensors.front();
  Json json = {{"way", outcome.way.name},
               {"subject", outcome.way.subject},
               {"ranks", outcome.way.options.ranks},
               {"layout", layout_name(outcome.way.options.layout)},
               {"schedule", schedule_name(schedule_spec(outcome.way.options))},
               {"mask", outcome.way.mask.text()},
               {"exact", !outcome.way.approximates},
               {"sent_bytes", outcome.totals.sent_bytes},
               {"stated_sent_bytes", outcome.stated_bytes},
               {"peak_bytes", outcome.totals.peak_bytes},
               {"peak_kv_bytes", outcome.totals.peak_kv_bytes},
               {"pairs", outcome.pairs},
               {"idle", outcome.idle},
               {"seconds", outcome.seconds},
               {"passed", outcome.check.held()},
               {"unbounded", outcome.check.unbounded()},
               {"worst_error", std::abs(out.worst.got - out.worst.exact)},
               {"allowed_there", out.worst.allowed},
               {"wrong_numbers", out.failed},
               {"numbers", out.compared}};
  json["simulated_seconds"] = outcome.simulated_s ? Json(*outcome.simulated_s) : Json(nullptr);
  return json;
}

/// Exact ways have to be right, and all ways to send what their closed forms say.
bool holds(const Outcome& outcome) {
  return outcome.stated_bytes == outcome.totals.sent_bytes &&
         (outcome.way.approximates || outcome.check.held());
}

std::vector<Outcome> run_all(const std::vector<Way>& ways, const Comparison& all) {
  std::vector<Outcome> outcomes;
  Progress progress("running");
  for (const Way& way : ways) {
    progress.update(static_cast<int>(outcomes.size()), static_cast<int>(ways.size()),
                    "running " + way.name);
    outcomes.push_back(outcome_of(way, all));
  }
  return outcomes;
}

int run_compare(Arguments& arguments) {
  Output output(arguments);
  const auto ranks = static_cast<int>(arguments.take_integer("ranks", 4, 1, kMostCompared));
  const LoadedInput loaded = load_input(
      arguments, {.tokens = 1024, .heads = 8, .kv_heads = 4, .mask = "causal", .built_in = true});
  const model::Machine machine = take_machine(arguments, loaded.problem);
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  Json configuration = Json::object();
  describe_input(loaded, configuration);
  configuration["ranks"] = ranks;
  configuration["machine"] = machine.name;
  output.print_configuration(configuration);
  const auto threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const ExactForward exact = reference_for(loaded.input(), {.threads = threads});
  const std::vector<Outcome> outcomes =
      run_all(ways_of(loaded.problem, ranks), {loaded, exact, machine});
  print_outcomes(outcomes, machine.name, output);
  const bool all_hold = std::ranges::all_of(outcomes, holds);
  output.print(
      "\nEvery way was run, and its answer compared with the exact one: \"within\" is what its "
      "arithmetic and its wire allow.\nclosed forms  {}\n",
      all_hold ? "bytes sent are as computed in every row"
               : "DIFFERENT from what was sent, or wrong");
  Json document = {{"configuration", configuration}, {"ways", Json::array()}, {"passed", all_hold}};
  for (const Outcome& outcome : outcomes) document["ways"].push_back(outcome_json(outcome));
  if (html) {
    output.show(*html, all_hold
                           ? "Every exact way is right, and sent what its closed form says."
                           : "Some way is wrong, or sent other bytes than its closed form says.");
  }
  return output.finish("compare", document, all_hold ? 0 : 1);
}

std::vector<OptionSpec> compare_options() {
  std::vector<OptionSpec> options;
  const std::map<std::string_view, std::string_view> own = {{"heads", "8"}, {"mask", "causal"}};
  for (const std::string_view word : kProblemWords) {
    options.push_back(option_spec(word, own.contains(word) ? own.at(word) : ""));
  }
  options.push_back({"ranks", "P", fmt::format("number of ranks, 1 … {} (4)", kMostCompared)});
  const std::vector<OptionSpec> machine = machine_options();
  options.insert(options.end(), machine.begin(), machine.end());
  options.push_back({"html", "FILE", "write the rows and their pictures as one page"});
  options.push_back(json_option());
  return options;
}

}  // namespace

Command compare_command() {
  Command command{"compare",
                  "one problem, every way to it: bytes, memory, idle time and answer, measured"};
  command.options = compare_options();
  command.examples = {
      "ringlab compare",
      "ringlab compare --text README.md --ranks 8 --html ways.html",
      "ringlab compare --random --tokens 2048 --heads 16 --kv-heads 2 --mask full --json ways.json",
  };
  command.more =
      "All ranks are threads of this process: times here are of one machine, whose cores they\n"
      "share; those on a machine that is not at hand are simulated (docs/simulate.md).\n"
      "Exit code 1 where an exact way is wrong or sends other bytes than its closed form says.";
  command.run = run_compare;
  return command;
}

}  // namespace ringlab::cli
