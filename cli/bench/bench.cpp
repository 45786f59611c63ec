// `ringlab bench [SUBJECT…]`: time, traffic and accuracy at every size, a line for each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "cli/bench/contest.h"
#include "cli/bench/lines.h"
#include "cli/bench/sizes.h"
#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/line/command.h"
#include "cli/line/progress.h"
#include "cli/machine/record.h"
#include "property_tests/subject_list.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr int kMostBenched = 64, kRounds = 5;
/// Rows of the option table that say nothing to bench: its input is random, its ranks are of this
/// process, and some rows of a problem with dropout cannot be checked.
constexpr std::array kLeftOut = {"input",        "text",      "random",     "dropout",
                                 "dropout-seed", "transport", "delay-seed", "tokens",
                                 "heads",        "head-dim",  "ranks"};

/// Subjects and rounds of a command line, besides its sizes.
struct Bench {
  std::vector<verify::Subject> subjects;
  verify::Place place;
  int rounds = kRounds;
  bool backward = false;
};

/// The work at one size. Without tensors it is a question whether it can be done.
struct SizedWork {
  LoadedInput loaded;
  std::vector<Contender> contenders;
};
enum class Tensors { made, left_out };

/// Without names of subjects: the engine.
std::vector<verify::Subject> benched_subjects(Arguments& arguments) {
  if (arguments.operands().empty()) return {verify::find_subject("optimized")};
  return subjects_named(arguments);
}

Bench take_bench(Arguments& arguments) {
  Bench bench{.subjects = benched_subjects(arguments), .place = place_of(arguments)};
  refuse_without_effect(arguments, bench.subjects, bench.place);
  bench.backward = arguments.take_switch("backward");
  bench.rounds = static_cast<int>(take_whole(arguments, "rounds", kRounds));
  for (const verify::Subject& subject : bench.subjects) {
    const std::string without =
        verify::why_without_effect(subject, run_option("backward"), bench.place);
    if (bench.backward && !without.empty()) {
      throw_usage_error(
          {"--backward", without, subject.name, "`ringlab list` shows who has them."});
    }
  }
  return bench;
}

RunOptions options_of(const verify::Subject& subject, Arguments& arguments) {
  RunOptions options =
      take_run_options(arguments, {.layout = LayoutKind::zigzag,
                                   .schedule = subject.can.schedule,
                                   .tile_queries = subject.tile_queries,
                                   .tile_keys = subject.tile_keys,
                                   .many_threads = subject.can.has(verify::Ability::threads)});
  if (!subject.can.has(verify::Ability::schedules)) options.schedule = subject.can.schedule;
  return options;
}

/// Errors as of `ringlab run` for a problem or options that a subject does not take here.
SizedWork work_at(const Arguments& size, const Bench& bench, Tensors tensors) {
  Arguments arguments = size.with("random", "");
  SizedWork work{.loaded = load_input(arguments, {.mask = "causal",
                                                  .gradients = bench.backward ? Gradients::of_input
                                                                              : Gradients::none,
                                                  .by_rows = tensors == Tensors::left_out}),
                 .contenders = {}};
  for (const verify::Subject& subject : bench.subjects) {
    work.contenders.push_back({subject, options_of(subject, arguments)});
  }
  arguments.reject_unused();
  check_fits_memory(work.loaded.problem.shape);
  for (const Contender& contender : work.contenders) {
    check_device_options(arguments, contender.options);
    check_subject_takes(contender.subject, work.loaded.problem, contender.options,
                        bench.backward ? Pass::backward : Pass::forward);
    require_device_of(contender.subject, contender.options.device);
  }
  return work;
}

Json configuration_of(const Arguments& arguments, const Bench& bench, const SizedWork& first) {
  Json configuration = {
      {"subjects", Json::array()}, {"rounds", bench.rounds}, {"backward", bench.backward}};
  for (const verify::Subject& subject : bench.subjects) {
    configuration["subjects"].push_back(subject.name);
  }
  Json input = Json::object();
  describe_input(first.loaded, input);
  for (const char* name : {"input", "dtype", "mask", "scale", "modifiers"}) {
    configuration[name] = input[name];
  }
  if (!arguments.given("scale")) configuration.erase("scale");  // each head_dim has its own
  describe_effects(bench.subjects, bench.place, first.contenders.front().options, configuration);
  configuration.erase("ranks");
  for (const char* name : {"threads", "tile-queries", "tile-keys"}) {  // each subject has its own
    if (!arguments.given(name)) configuration.erase(name_of(run_option(name)));
  }
  return configuration;
}

std::vector<BenchLine> measured(const SizedWork& work, int rounds) {
  const int total = (rounds + 1) * static_cast<int>(work.contenders.size());
  Progress progress("bench");
  return contest(work.loaded, work.contenders, rounds, [&](int done) {
    progress.update(done, total, fmt::format("{} tokens", work.loaded.problem.shape.q_tokens));
  });
}

int run_bench(Arguments& arguments) {
  Output output(arguments);
  const Bench bench = take_bench(arguments);
  const std::optional<std::string> html = take_file(arguments, "html");
  const std::vector<Arguments> sizes = at_every_size(arguments);
  for (const Arguments& size : sizes) work_at(size, bench, Tensors::left_out);
  const Json configuration =
      configuration_of(arguments, bench, work_at(sizes.front(), bench, Tensors::left_out));
  output.print_configuration(configuration, left_to_defaults(arguments));
  Record record(output, arguments, {{"configuration", configuration}});
  BenchTable table(bench.subjects, output);
  Json documents = Json::array();
  bool right = true;
  for (const Arguments& size : sizes) {
    const SizedWork work = work_at(size, bench, Tensors::made);
    const std::vector<BenchLine> found = measured(work, bench.rounds);
    for (std::size_t i = 0; i < found.size(); ++i) {
      table.print(work.contenders[i], work.loaded.problem.shape, found[i]);
      documents.push_back(line_json(work.contenders[i], work.loaded.problem.shape, found[i]));
      right &= found[i].right;
    }
    record.keep("lines", documents);
  }
  if (html) output.show(*html, right ? "Every answer is right." : "Some answer is WRONG.");
  return record.finish(right ? 0 : 1);
}

std::vector<OptionSpec> bench_options() {
  std::vector<OptionSpec> options = size_options();
  for (const OptionSpec& option :
       option_specs({OptionGroup::problem, OptionGroup::run, OptionGroup::devices})) {
    if (std::ranges::count(kLeftOut, option.name) == 0) options.push_back(option);
  }
  for (OptionSpec& option : options) {
    if (option.name == "dtype") option = option_spec("dtype", "f32");
    if (option.name == "mask") option = option_spec("mask", "causal");
    if (option.name == "layout") option = option_spec("layout", "zigzag");
  }
  options.push_back({"backward", "", "gradients too, of a random one of the output"});
  options.push_back(
      {"rounds", "R", fmt::format("timed rounds, after one that is not ({})", kRounds)});
  options.push_back({"html", "FILE", "write the lines and a picture of their times as one page"});
  options.push_back(json_option());
  return options;
}

}  // namespace

Command bench_command() {
  Command command{"bench",
                  "time, flop/s, bytes moved and accuracy of subjects, a line for each size"};
  command.operands = "[SUBJECT…]";
  command.max_operands = kMostBenched;
  command.options = bench_options();
  command.examples = {"ringlab bench",
                      "ringlab bench --tokens 4096:65536:x2 --ranks 2,4 --backward",
                      "ringlab bench broadcast ring optimized --tokens 512,1024 --html bench.html",
                      "ringlab bench optimized --dtype bf16 --device cuda --tokens 8192:131072:x2",
                      "ringlab bench optimized ./libmine.so --ranks 1 --tokens 1000"};
  command.more =
      "--tokens, --heads, --head-dim and --ranks take one number, several with commas between, or\n"
      "FIRST:LAST:xFACTOR or FIRST:LAST:+STEP; all their combinations are measured. Without\n"
      "subjects: optimized. Subjects take turns, once a round; \"/ first\" is the time over that "
      "of\n"
      "the first subject in the same round. The time is that of `ringlab run`, its median over "
      "the\n"
      "rounds, and the 10th percentile beside it. moved: bytes sent, of all ranks; K/V held: of "
      "the\n"
      "rank that holds most. Some rows of each answer are compared with the exact reference, and\n"
      "gradients by sums over all tokens; exit code 1 where one is WRONG. Absolute times of a\n"
      "shared machine are not comparable from run to run, the ratios are.\n\n" +
      std::string(kAboutPlugins);
  command.run = run_bench;
  return command;
}

}  // namespace ringlab::cli
