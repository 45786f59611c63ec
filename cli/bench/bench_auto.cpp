// `ringlab bench --auto MACHINE`: the way that a plan chooses, beside every fixed one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/measure/timing.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "property_tests/case.h"
#include "property_tests/subject_list.h"
#include "reference/model/machine_file.h"
#include "reference/model/planner.h"

namespace ringlab::cli {
namespace {

constexpr int kRounds = 7;
constexpr int kUsualSlots = 2;

struct AutoCase {
  const char* mask;
  std::int64_t tokens;
  int ranks;
  Pass last_pass = Pass::forward;
};
constexpr std::array kCases = {AutoCase{"causal", 2048, 2},
                               AutoCase{"causal", 8192, 2},
                               AutoCase{"causal", 4096, 4},
                               AutoCase{"full", 4096, 2},
                               AutoCase{"full", 4096, 4},
                               AutoCase{"causal+window:255,0", 8192, 4},
                               AutoCase{"causal", 4096, 2, Pass::backward}};

std::string words_of(const RunOptions& way) {
  return fmt::format("{} {}", layout_name(way.layout), schedule_name(schedule_spec(way)));
}

verify::Case made_case(const AutoCase& one) {
  verify::Case made;
  made.shape = {.batch = 1,
                .q_heads = 4,
                .kv_heads = 4,
                .q_tokens = one.tokens,
                .kv_tokens = one.tokens,
                .head_dim = 64,
                .v_dim = 64};
  made.mask = one.mask;
  return made;
}

/// The fixed ways, with two slots where a schedule has slots, and among them the chosen way, with
/// its own number of slots.
struct Ways {
  std::vector<RunOptions> all;
  std::size_t chosen = 0;
};

Ways ways_of(const AutoCase& one, const Problem& problem, const model::Machine& machine) {
  model::Job job{.problem = problem, .options = {.ranks = one.ranks}};
  if (one.last_pass == Pass::backward) job.passes.push_back(Pass::backward);
  const auto choices = model::weigh_ways(job, machine, largest_memory);
  const std::size_t best = model::best_choice(choices, {});
  Ways ways;
  for (std::size_t at = 0; at < choices.size(); ++at) {
    if (at == best) ways.chosen = ways.all.size();
    const bool is_usual = choices[at].options.slots == kUsualSlots;
    if (is_usual || at == best) ways.all.push_back(choices[at].options);
  }
  return ways;
}

/// Times all ways of one case in turn.
std::vector<bench::Timing> timed(const AutoCase& one, const std::vector<RunOptions>& ways,
                                 int rounds) {
  const verify::Subject subject = verify::find_subject("optimized");
  const verify::Case made = made_case(one);
  const Problem problem = verify::make_problem(made);
  const AttentionTensors tensors = verify::make_tensors(made);
  AttentionInput input = tensors.input(problem);
  const Tensor<double> dout = verify::make_dout(made);
  if (one.last_pass == Pass::backward) input.dout = dout.view();
  std::vector<bench::Contender> contenders;
  for (RunOptions options : ways) {
    options.tile_queries = subject.tile_queries;
    options.tile_keys = subject.tile_keys;
    options.threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.ranks);
    contenders.push_back({words_of(options), {}, [&subject, &input, options] {
                            return subject.run(input, options).seconds;
                          }});
  }
  Progress progress("auto");
  return bench::time_in_turn(
      contenders, {rounds, [&](int done, int total) { progress.update(done, total, one.mask); }});
}

}  // namespace

int bench_auto(Arguments& arguments) {
  Output output(arguments);
  const std::string name = *arguments.take_text("auto");
  const int rounds = static_cast<int>(arguments.take_integer("rounds", kRounds, 1, 1000));
  arguments.reject_unused();
  const Json configuration = {{"subject", "optimized"}, {"machine", name},
                              {"rounds", rounds},       {"heads", 4},
                              {"head_dim", 64},         {"dtype", "f32"}};
  output.print_configuration(configuration);
  BenchRecord record(output, arguments, {{"configuration", configuration}});
  TextTable table({{"mask"},
                   {"tokens", Align::right},
                   {"ranks", Align::right},
                   {"passes"},
                   {"auto"},
                   {"time", Align::right},
                   {"best fixed"},
                   {"over it", Align::right},
                   {"worst fixed", Align::right}});
  Json cases = Json::array();
  for (const AutoCase& one : kCases) {
    const Problem problem = verify::make_problem(made_case(one));
    const model::Machine machine = model::suited_to(model::machine_named(name), problem);
    const Ways ways = ways_of(one, problem, machine);
    const std::vector<bench::Timing> timings = timed(one, ways.all, rounds);
    const bench::Timing& chosen = timings[ways.chosen];
    const auto [best, worst] = std::minmax_element(
        timings.begin(), timings.end(),
        [](const auto& a, const auto& b) { return a.seconds.median < b.seconds.median; });
    const double over = chosen.seconds.median / best->seconds.median;
    const std::string passes = one.last_pass == Pass::backward ? "both" : "forward";
    table.add({one.mask, fmt::format("{}", one.tokens), fmt::format("{}", one.ranks), passes,
               chosen.name, report::human_seconds(chosen.seconds.median), best->name,
               fmt::format("{:.3f}", over),
               fmt::format("{:.2f}", worst->seconds.median / best->seconds.median)});
    Json fixed = Json::array();
    for (const bench::Timing& timing : timings) {
      fixed.push_back({{"way", timing.name}, {"seconds", spread_json(timing.seconds)}});
    }
    cases.push_back({{"mask", one.mask},
                     {"tokens", one.tokens},
                     {"ranks", one.ranks},
                     {"passes", passes},
                     {"auto", chosen.name},
                     {"over_best", over},
                     {"ways", fixed}});
    record.keep("cases", cases);
  }
  output.print("\n{}", table.text());
  record.finish();
  return 0;
}

}  // namespace ringlab::cli
