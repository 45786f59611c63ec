// `ringlab simulate`: what a ring would cost on a machine that is not at hand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/machine_options.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/problem_options.h"
#include "cli/report/human.h"
#include "cli/report/trace_page.h"
#include "cli/run_costs.h"
#include "cli/run_options.h"
#include "cli/text_table.h"
#include "cli/trace_file.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "reference/model/closed_forms.h"
#include "reference/model/simulation.h"

namespace ringlab::cli {
namespace {

constexpr double kMostTimes = 1e6;
constexpr std::size_t kMostRows = 16;

// --- what is simulated ---------------------------------------------------------------------------

struct Question {
  Problem problem;
  RunOptions options;
  std::vector<Pass> passes;
  model::Machine machine;
  model::Disturbance disturbance;
};

/// "3:2,7:1.5": rank 3 takes twice as long for its blocks, rank 7 one and a half times.
std::vector<double> take_slower(Arguments& arguments, int ranks) {
  const std::optional<std::string> text = arguments.take_text("slow");
  if (!text) return {};
  std::vector<double> slower(static_cast<std::size_t>(ranks), 1);
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    const std::string word = text->substr(begin, end - begin);
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      throw_usage_error({"--slow", "RANK:TIMES, joined by commas", "\"" + word + "\"",
                         "3:2 makes rank 3 twice as slow."});
    }
    const std::int64_t rank = parse_integer("slow", word.substr(0, colon), 0, ranks - 1);
    slower[static_cast<std::size_t>(rank)] =
        parse_real("slow", word.substr(colon + 1), 1 / kMostTimes, kMostTimes);
    begin = end + 1;
  }
  return slower;
}

Question take_question(Arguments& arguments) {
  Question question;
  question.problem = take_problem(arguments, {.tokens = 131072,
                                              .heads = 32,
                                              .kv_heads = 8,
                                              .head_dim = 128,
                                              .dtype = DType::bf16,
                                              .mask = "causal"});
  question.options = take_run_options(arguments, {.ranks = 8, .layout = LayoutKind::zigzag});
  question.passes = {Pass::forward};
  if (arguments.take_switch("backward")) question.passes.push_back(Pass::backward);
  question.machine = take_machine(arguments);
  question.disturbance.slower = take_slower(arguments, question.options.ranks);
  question.disturbance.jitter = arguments.take_real("jitter", 0, 0, kMostTimes);
  if (arguments.given("seed") && question.disturbance.jitter == 0) {
    throw_usage_error(
        {"--seed", "to be given with --jitter", "that it would be ignored here", "Leave it out."});
  }
  question.disturbance.seed = arguments.take_unsigned("seed", 1);
  return question;
}

Json configuration_of(const Question& question) {
  Json options;
  describe_run_options(question.options, options);
  const Shape& shape = question.problem.shape;
  Json configuration = {{"tokens", shape.q_tokens},
                        {"heads", shape.q_heads},
                        {"kv_heads", shape.kv_heads},
                        {"head_dim", shape.head_dim},
                        {"dtype", std::string(dtype_info(question.problem.dtype).name)},
                        {"mask", question.problem.mask.text()},
                        {"passes", question.passes.size() == 1 ? "forward" : "forward, backward"}};
  for (const char* name : {"ranks", "layout", "direction", "schedule", "slots", "wire"}) {
    configuration[name] = options[name];
  }
  configuration.update(machine_figures(question.machine));
  if (question.disturbance.jitter > 0) {
    configuration["jitter"] = question.disturbance.jitter;
    configuration["seed"] = question.disturbance.seed;
  }
  if (!question.disturbance.slower.empty()) configuration["slow"] = question.disturbance.slower;
  return configuration;
}

// --- the answer ----------------------------------------------------------------------------------

/// Of all passes, one after the other.
struct Answer {
  std::vector<model::RankTimes> ranks;
  double seconds = 0;
  double one_device_seconds = 0;
  report::Trace events = {};
  double efficiency() const {
    return one_device_seconds / (seconds * static_cast<double>(ranks.size()));
  }
};

void add_pass(const Question& question, Pass pass, const NeedMatrix& need,
              const std::vector<std::int64_t>& tokens, Answer& answer) {
  const Schedule schedule = build_schedule(schedule_spec(question.options), need, pass);
  const model::Work work = model::work_of(question.problem, pass, question.options.wire);
  const model::Load load{schedule, need, tokens, work};
  const model::Simulation simulation =
      model::simulate(load, question.machine, question.disturbance);
  const auto before_ns = static_cast<std::int64_t>(answer.seconds * 1e9);
  for (const std::vector<TraceEvent>& events : simulation.events) {
    for (TraceEvent event : events) {
      event.begin_ns += before_ns, event.end_ns += before_ns;
      answer.events.push_back(event);
    }
  }
  answer.ranks.resize(simulation.ranks.size());
  for (std::size_t rank = 0; rank < answer.ranks.size(); ++rank) {
    model::RankTimes& sum = answer.ranks[rank];
    const model::RankTimes& part = simulation.ranks[rank];
    sum.compute_s += part.compute_s, sum.add_s += part.add_s, sum.wait_s += part.wait_s;
    sum.incoming_s += part.incoming_s;
    sum.end_s = answer.seconds + part.end_s;
  }
  answer.seconds += simulation.seconds;
  answer.one_device_seconds += model::one_device_seconds(load, question.machine);
}

Answer answer_to(const Question& question) {
  const Shape& shape = question.problem.shape;
  const Layout queries = make_layout(question.options, shape.q_tokens, {});
  const Layout keys = make_layout(question.options, shape.kv_tokens, {});
  const NeedMatrix need = need_matrix(question.problem.mask, queries, keys);
  std::vector<std::int64_t> tokens;
  for (int rank = 0; rank < keys.ranks(); ++rank) tokens.push_back(keys.positions(rank).size());
  Answer answer;
  for (const Pass pass : question.passes) add_pass(question, pass, need, tokens, answer);
  return answer;
}

double idle_of(const Answer& answer, const model::RankTimes& rank) {
  return answer.seconds > 0 ? 1 - rank.compute_s / answer.seconds : 0;
}

// --- what is told --------------------------------------------------------------------------------

void print_ranks(const Answer& answer, Output& output) {
  TextTable table({{"rank", Align::right},
                   {"computing", Align::right},
                   {"sums", Align::right},
                   {"waiting", Align::right},
                   {"coming in", Align::right},
                   {"idle", Align::right}});
  const std::size_t rows = std::min(answer.ranks.size(), kMostRows);
  for (std::size_t rank = 0; rank < rows; ++rank) {
    const model::RankTimes& times = answer.ranks[rank];
    table.add({fmt::format("{}", rank), report::human_seconds(times.compute_s),
               report::human_seconds(times.add_s), report::human_seconds(times.wait_s),
               report::human_seconds(times.incoming_s),
               report::percent_text(idle_of(answer, times))});
  }
  output.print("{}", table.text());
  if (rows < answer.ranks.size()) {
    output.print("… and {} more; --json has all\n", answer.ranks.size() - rows);
  }
}

/// Of the last pass, which sends most.
Json hidden_json(const Question& question) {
  const model::Machine& machine = question.machine;
  const model::Work work =
      model::work_of(question.problem, question.passes.back(), question.options.wire);
  const Shape& shape = question.problem.shape;
  const double share = static_cast<double>(question.problem.mask.count_all()) /
                       (static_cast<double>(shape.q_tokens) * static_cast<double>(shape.kv_tokens));
  Json json = {{"inside", model::hidden_from_tokens(work, machine, machine.inside, share)}};
  if (question.options.ranks > machine.node_ranks) {
    json["between_nodes"] = model::hidden_from_tokens(work, machine, machine.outside, share);
  }
  return json;
}

std::int64_t largest_memory(const Question& question) {
  const RunAccount account{question.problem, question.options, question.passes.back(), {}};
  const auto costs = ring::engine_costs(question.problem, question.options, question.passes.back());
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < costs.size(); ++rank) {
    const Given given = given_bytes(account, static_cast<int>(rank));
    most = std::max(most, given.inputs + given.outputs + costs[rank].peak_bytes);
  }
  return most;
}

void print_findings(const Question& question, const Answer& answer, const Json& document,
                    Output& output) {
  output.print("\ntime          {}\none device    {}\nefficiency    {}\n",
               report::human_seconds(answer.seconds),
               report::human_seconds(answer.one_device_seconds),
               report::percent_text(answer.efficiency()));
  output.print("memory        {} on the fullest rank\n",
               report::human_bytes(document["memory_bytes"].get<std::int64_t>()));
  const Json& hidden = document["hidden_from_tokens"];
  output.print("hops hide     from chunks of {:.0f} tokens on",
               std::ceil(hidden["inside"].get<double>()));
  if (hidden.contains("between_nodes")) {
    output.print(", {:.0f} between nodes", std::ceil(hidden["between_nodes"].get<double>()));
  }
  output.print("; here {}\n", document["chunk_tokens"].get<std::int64_t>());
  if (question.passes.size() == 2) output.print("              (of the backward pass)\n");
}

Json document_of(const Question& question, const Answer& answer, const Json& configuration) {
  Json ranks = Json::array();
  for (const model::RankTimes& rank : answer.ranks) {
    ranks.push_back({{"compute_seconds", rank.compute_s},
                     {"add_seconds", rank.add_s},
                     {"wait_seconds", rank.wait_s},
                     {"incoming_seconds", rank.incoming_s},
                     {"end_seconds", rank.end_s},
                     {"idle", idle_of(answer, rank)}});
  }
  const Layout keys = make_layout(question.options, question.problem.shape.kv_tokens, {});
  return {{"configuration", configuration},
          {"seconds", answer.seconds},
          {"one_device_seconds", answer.one_device_seconds},
          {"efficiency", answer.efficiency()},
          {"chunk_tokens", keys.largest_chunk()},
          {"hidden_from_tokens", hidden_json(question)},
          {"memory_bytes", largest_memory(question)},
          {"ranks", ranks}};
}

std::optional<std::string> take_path(Arguments& arguments, const std::string& option) {
  std::optional<std::string> path = arguments.take_text(option);
  if (!path) return path;
  check_file_name(option, *path);
  check_writable(option, *path);
  return path;
}

int run_simulate(Arguments& arguments) {
  Output output(arguments);
  const Question question = take_question(arguments);
  const std::optional<std::string> trace = take_path(arguments, "trace");
  const std::optional<std::string> svg = take_path(arguments, "svg");
  const std::optional<std::string> html = take_path(arguments, "html");
  arguments.reject_unused();
  const Json configuration = configuration_of(question);
  output.print_configuration(configuration);
  const Answer answer = answer_to(question);
  const Json document = document_of(question, answer, configuration);
  print_ranks(answer, output);
  print_findings(question, answer, document, output);
  if (trace) write_trace(*trace, answer.events);
  if (svg || html) {
    const report::TraceSummary summary = report::summarize(answer.events);
    if (svg) io::write_file(*svg, report::trace_svg_file(answer.events, summary));
    if (html) io::write_file(*html, report::trace_page(answer.events, summary, "simulated run"));
  }
  output.finish("simulate", document);
  return 0;
}

std::vector<OptionSpec> simulate_options() {
  std::vector<OptionSpec> options = {
      {"tokens", "N", "queries and keys (131072)"},
      {"heads", "H", "query heads (32)"},
      {"kv-heads", "H", "key/value heads (8; half of --heads where that is given)"},
      {"head-dim", "D", "channels per head (128)"},
      {"dtype", "TYPE", "f64, f32, f16 or bf16 (bf16)"},
      {"mask", "MASK", "as in `ringlab run` (causal)"},
      {"backward", "", "the backward pass too, after the forward pass"},
  };
  for (const OptionSpec& option : run_option_specs()) {
    for (const char* name : {"ranks", "layout", "direction", "schedule", "slots", "wire"}) {
      if (option.name == name) options.push_back(option);
    }
  }
  for (const OptionSpec& option : machine_options()) options.push_back(option);
  options.push_back({"slow", "R:X,…", "rank R takes X times as long for its blocks"});
  options.push_back({"jitter", "X", "blocks take 1 + X·E times as long, E random of mean 1 (0)"});
  options.push_back({"seed", "S", "of the jitter (1)", "with --jitter"});
  options.push_back({"trace", "FILE", "write what each rank would do when, for `ringlab trace`"});
  options.push_back({"svg", "FILE", "write the lanes of all ranks as a picture"});
  options.push_back({"html", "FILE", "write picture and tables as one page"});
  options.push_back(json_option());
  return options;
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
