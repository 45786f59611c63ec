// `ringlab simulate`: what a ring would cost on a machine that is not at hand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "cli/inputs/run_options.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/text_table.h"
#include "cli/line/words.h"
#include "cli/model/executed_ranks.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_picture.h"
#include "cli/run/run_output.h"
#include "reference/core/error.h"
#include "reference/core/options/option_table.h"
#include "reference/model/closed_forms.h"
#include "reference/model/many_ranks.h"

namespace ringlab::cli {
namespace {

constexpr double kMostTimes = 1e6;
constexpr std::size_t kMostRows = 16;

// --- what is simulated ---------------------------------------------------------------------------

/// The options of a run that the model knows.
constexpr std::array kRunOptions = {"ranks", "layout", "direction", "schedule", "slots", "wire"};

struct Question {
  model::Job job;
  model::Machine machine = {};
  model::Disturbance disturbance = {};
};

/// "3:2,7:1.5": rank 3 takes twice as long for its blocks, rank 7 one and a half times.
std::vector<double> take_slower(Arguments& arguments, int ranks) {
  if (!arguments.given("slow")) return {};
  std::vector<double> slower(static_cast<std::size_t>(ranks), 1);
  std::set<std::int64_t> named;
  for (const std::string& word : arguments.take_words("slow")) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      throw_usage_error({"--slow", "RANK:TIMES, joined by commas", "\"" + word + "\"",
                         "3:2 makes rank 3 twice as slow."});
    }
    const std::int64_t rank = parse_integer("slow", word.substr(0, colon), 0, ranks - 1);
    if (!named.insert(rank).second) {
      throw_usage_error({"--slow", "each rank once", fmt::format("rank {} again", rank), ""});
    }
    slower[static_cast<std::size_t>(rank)] =
        parse_real("slow", word.substr(colon + 1), 1 / kMostTimes, kMostTimes);
  }
  return slower;
}

Question take_question(Arguments& arguments) {
  Question question{.job = take_modelled_job(arguments)};
  question.job.options = take_run_options(
      arguments, {.ranks = 8, .most_ranks = kMostModelledRanks, .layout = LayoutKind::zigzag});
  question.machine = take_machine(arguments, question.job.problem);
  question.disturbance.slower = take_slower(arguments, question.job.options.ranks);
  question.disturbance.jitter = arguments.take_real("jitter", 0, 0, kMostTimes);
  if (arguments.given("seed") && question.disturbance.jitter == 0) {
    throw_usage_error(
        {"--seed", "it only with --jitter", "that it changes nothing", "Leave it out."});
  }
  question.disturbance.seed = arguments.take_unsigned("seed", 1);
  return question;
}

Json configuration_of(const Question& question, const Json& machine) {
  Json configuration = modelled_job_figures(question.job);
  describe_run_options(question.job.options, configuration, [](const RunOption& option) {
    return std::ranges::count(kRunOptions, option.word) > 0;
  });
  configuration.update(machine);
  if (question.disturbance.jitter > 0) {
    configuration["jitter"] = question.disturbance.jitter;
    configuration["seed"] = question.disturbance.seed;
  }
  if (!question.disturbance.slower.empty()) configuration["slow"] = question.disturbance.slower;
  return configuration;
}

/// The answer: the ranks that are executed, and the times of the job.
struct Answer {
  ExecutedRanks executed;
  model::JobNeeds needs;  ///< of what is executed
  model::JobTimes times = {};
};

model::JobTimes times_on(const model::Machine& machine, const Question& question,
                         const Answer& answer) {
  return answer.executed.all
             ? model::simulate_job(question.job, answer.needs, machine, question.disturbance)
             : model::times_of_many(question.job, machine);
}

/// Given options that ask for figures of each rank.
std::vector<std::string> options_by_rank(const Question& question, bool with_events) {
  std::vector<std::string> words;
  if (with_events) words.emplace_back("--trace, --svg and --html");
  if (!question.disturbance.slower.empty()) words.emplace_back("--slow");
  if (question.disturbance.jitter > 0) words.emplace_back("--jitter");
  return words;
}

Answer answer_to(const Question& question, const ExecutedRanks& executed) {
  Answer answer{.executed = executed,
                .needs = model::needs_of(executed.job.problem, executed.job.options)};
  answer.times = times_on(question.machine, question, answer);
  return answer;
}

double idle_of(const model::JobTimes& times, const model::RankTimes& rank) {
  return times.seconds > 0 ? 1 - rank.compute_s / times.seconds : 0;
}

// --- what is told --------------------------------------------------------------------------------

std::string continued_text(const ExecutedRanks& executed, std::size_t ranks) {
  const int most = executed.job.options.ranks;
  if (executed.half == 0) {
    return fmt::format("{} with chunks as long are executed: the window reaches across no more",
                       most);
  }
  const bool ends = static_cast<std::size_t>(executed.last) < ranks;
  return fmt::format(
      "{} and {} with chunks as long are executed; the line through both goes on to {}{}",
      executed.half, most, executed.last, ends ? ", as far as the window reaches" : "");
}

void print_ranks(const Answer& answer, Output& output) {
  const model::JobTimes& times = answer.times;
  if (!answer.executed.all) {
    output.print("ranks         {}\n", continued_text(answer.executed, times.ranks.size()));
    return;
  }
  TextTable table({{"rank", Align::right},
                   {"computing", Align::right},
                   {"sums", Align::right},
                   {"waiting", Align::right},
                   {"coming in", Align::right},
                   {"idle", Align::right}});
  const std::size_t rows = std::min(times.ranks.size(), kMostRows);
  for (std::size_t rank = 0; rank < rows; ++rank) {
    const model::RankTimes& parts = times.ranks[rank];
    table.add({fmt::format("{}", rank), report::human_seconds(parts.compute_s),
               report::human_seconds(parts.add_s), report::human_seconds(parts.wait_s),
               report::human_seconds(parts.incoming_s),
               report::human_percent(idle_of(times, parts))});
  }
  output.print("{}", table.text());
  if (rows < times.ranks.size()) {
    output.print("… and {} more; --json has all\n", times.ranks.size() - rows);
  }
}

/// Chunk lengths that hide hops in the last pass, which sends most; null where none hides all.
Json hidden_json(const Answer& answer, const model::Machine& machine) {
  const model::Job& job = answer.executed.job;
  const RunOptions& options = job.options;
  const Shape& shape = job.problem.shape;
  const std::optional<double> share =
      model::share_of_blocks(answer.needs.need, shape.q_tokens, shape.kv_tokens);
  if (!share || options.schedule != ScheduleKind::ring) return nullptr;
  const model::Work work = model::work_of(job.problem, job.passes.back(), options.wire);
  Json json = {{"inside", model::hidden_from_tokens(work, machine, machine.inside, *share)}};
  if (options.ranks > machine.node_ranks) {
    json["between_nodes"] = model::hidden_from_tokens(work, machine, machine.outside, *share);
  }
  return json;
}

void print_hidden(const Json& document, bool backward, Output& output) {
  const Json& hidden = document["hidden_from_tokens"];
  if (hidden.is_null()) return;
  output.print("hops hide     from chunks of {:.0f} tokens on",
               std::ceil(hidden["inside"].get<double>()));
  if (hidden.contains("between_nodes")) {
    output.print(", {:.0f} between nodes", std::ceil(hidden["between_nodes"].get<double>()));
  }
  output.print("; here {}\n", document["chunk_tokens"].get<std::int64_t>());
  if (backward) output.print("              (of the backward pass)\n");
}

void print_memory(std::int64_t bytes, const model::Machine& machine, Output& output) {
  const bool fits = static_cast<double>(bytes) <= machine.memory_bytes;
  output.print("memory        {} on the fullest rank{}\n", report::human_bytes(bytes),
               fits ? "" : ", more than it has");
}

// The run with the losses of real machines, where those of the machine are known.
struct ExpectedRun {
  model::Machine machine;
  model::JobTimes times;
};
std::optional<ExpectedRun> expected_run(const Question& question, const Answer& answer) {
  const auto machine = model::as_expected(question.machine, question.job.problem);
  if (!machine) return std::nullopt;
  return ExpectedRun{*machine, times_on(*machine, question, answer)};
}

Json expected_json(const std::optional<ExpectedRun>& run) {
  if (!run) return nullptr;
  return {{"seconds", run->times.seconds},
          {"one_device_seconds", run->times.one_device_seconds},
          {"efficiency", run->times.efficiency()},
          {"merge_bytes", run->machine.merge_bytes},
          {"link_share", run->machine.expected->link_share},
          {"transfer_share", run->machine.transfer_share},
          {"speeds_by_length", !run->machine.blocks.empty()}};
}

void print_expected(const Json& expected, Output& output) {
  if (expected.is_null()) return;
  const double merge = expected["merge_bytes"].get<double>();
  const double taken = expected["transfer_share"].get<double>();
  output.print("expected      {}, {}: links at {:.3g} %{}{}{}\n",
               report::human_seconds(expected["seconds"].get<double>()),
               report::human_percent(expected["efficiency"].get<double>()),
               100 * expected["link_share"].get<double>(),
               expected["speeds_by_length"].get<bool>() ? ", kernels by mask and length" : "",
               merge > 0 ? fmt::format(", merges of {:.3g} bytes a number", merge) : "",
               taken > 0 ? fmt::format(", transfers take {:.3g} % of computing", 100 * taken) : "");
}

void print_findings(const Question& question, const model::JobTimes& times, const Json& document,
                    Output& output) {
  output.print("\ntime          {}\none device    {}\nefficiency    {}\n",
               report::human_seconds(times.seconds),
               report::human_seconds(times.one_device_seconds),
               report::human_percent(times.efficiency()));
  print_expected(document["expected"], output);
  print_memory(document["memory_bytes"].get<std::int64_t>(), question.machine, output);
  print_hidden(document, question.job.passes.size() == 2, output);
}

/// The tokens whose queries a rank holds, as runs of [first, stride, count].
Json positions_json(const Positions& positions) {
  Json runs = Json::array();
  for (const PositionRun& run : positions.runs()) {
    runs.push_back({run.first, run.stride, run.count});
  }
  return runs;
}

/// Figures by rank; null where not all ranks are executed.
Json ranks_json(const Question& question, const Answer& answer) {
  if (!answer.executed.all) return nullptr;
  const model::JobTimes& times = answer.times;
  const RunOptions& options = question.job.options;
  const Layout layout = make_layout(options, question.job.problem.shape.q_tokens, options.q_layout);
  Json ranks = Json::array();
  for (std::size_t at = 0; at < times.ranks.size(); ++at) {
    const model::RankTimes& rank = times.ranks[at];
    ranks.push_back({{"positions", positions_json(layout.positions(static_cast<int>(at)))},
                     {"compute_seconds", rank.compute_s},
                     {"add_seconds", rank.add_s},
                     {"wait_seconds", rank.wait_s},
                     {"incoming_seconds", rank.incoming_s},
                     {"end_seconds", rank.end_s},
                     {"idle", idle_of(times, rank)}});
  }
  return ranks;
}

std::int64_t memory_of(const Question& question, const Answer& answer) {
  return answer.executed.all ? largest_memory(question.job, answer.needs)
                             : model::bytes_of_many(question.job, question.machine, largest_memory);
}

Json document_of(const Question& question, const Answer& answer) {
  const model::JobTimes& times = answer.times;
  const std::vector<std::int64_t>& tokens = answer.needs.tokens;
  return {{"configuration", configuration_of(question, machine_json(question.machine))},
          {"seconds", times.seconds},
          {"one_device_seconds", times.one_device_seconds},
          {"efficiency", times.efficiency()},
          {"expected", expected_json(expected_run(question, answer))},
          {"chunk_tokens", *std::max_element(tokens.begin(), tokens.end())},
          {"hidden_from_tokens", hidden_json(answer, question.machine)},
          {"memory_bytes", memory_of(question, answer)},
          {"executed_ranks", answer.executed.job.options.ranks},
          {"ranks", ranks_json(question, answer)}};
}

int run_simulate(Arguments& arguments) {
  Output output(arguments);
  const Question question = take_question(arguments);
  const std::optional<std::string> trace = take_file(arguments, "trace");
  const std::optional<std::string> svg = take_file(arguments, "svg");
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  const ExecutedRanks executed = executed_ranks(question.job, question.machine,
                                                options_by_rank(question, trace || svg || html));
  output.print_configuration(configuration_of(question, machine_figures(question.machine)));
  const Answer answer = answer_to(question, executed);
  const model::JobTimes& times = answer.times;
  const Json document = document_of(question, answer);
  print_ranks(answer, output);
  print_findings(question, times, document, output);
  if (trace) output.write_at_the_end(write_trace(*trace, times.events, output.files()));
  if (svg) {
    output.files().write(*svg,
                         report::trace_svg_file(times.events, report::summarize(times.events)));
  }
  if (html) {
    output.show(*html, fmt::format("{} on the model.", report::human_seconds(times.seconds)),
                {{"events", report::events_json(times.events)}});
  }
  return output.finish("simulate", document);
}

std::vector<OptionSpec> simulate_options() {
  RunOption ranks = run_option("ranks");
  ranks.most = kMostModelledRanks;
  std::vector<OptionSpec> run;
  for (const std::string_view word : kRunOptions) {
    run.push_back(option_spec(word, word == "layout" ? "zigzag" : ""));
    if (word == "ranks") run.back().help = help_of(ranks, "8");
  }
  return model_options(
      run,
      {{"slow", "R:X,...", "rank R takes X times as long for its blocks"},
       {"jitter", "X", "blocks take 1 + X·E times as long, E random of mean 1 (0)"},
       {"seed", "S", "seed of the jitter (1); - reads it from standard input", "with --jitter"},
       {"trace", "FILE", "write what each rank would do when, for `ringlab trace`"},
       {"svg", "FILE", "write the lanes of all ranks as a picture"},
       {"html", "FILE", "write picture and tables as one page"}});
}

}  // namespace

Command simulate_command() {
  Command command{"simulate", "what a ring would cost on a machine that is not at hand"};
  command.options = simulate_options();
  command.examples = {
      "ringlab simulate --tokens 1048576 --ranks 32 --backward",
      "ringlab simulate --ranks 8 --layout contiguous --svg idle.svg",
      "ringlab simulate --ranks 16 --machine h100 --node-bandwidth 25 --schedule double:8",
      "ringlab simulate --machine ethernet --dtype f32 --ranks 4 --slow 2:1.5 --html slow.html",
  };
  command.more =
      "Nothing is computed: the schedule is executed on a model of the machine "
      "(docs/simulate.md).\n"
      "Figures of named machines are published ones, not measured here.";
  command.run = run_simulate;
  return command;
}

}  // namespace ringlab::cli
