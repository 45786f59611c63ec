// `ringlab bench`: time, bytes and memory, side by side in one run.
#include "cli/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/bench/cpu/naive.h"
#include "cli/bench/measure/timing.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/report/totals.h"
#include "property_tests/case.h"
#include "property_tests/subject_list.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

using bench::Spread;
using bench::Timing;

struct BenchShape {
  std::int64_t tokens = 1024;
  std::int64_t heads = 4;
  std::int64_t head_dim = 64;
  int ranks = 4;
  int rounds = 11;
};

/// Standard normal tensors; causal, f32.
verify::Case bench_case(const BenchShape& shape, std::int64_t heads) {
  verify::Case c;
  c.shape = {.batch = 1,
             .q_heads = heads,
             .kv_heads = heads,
             .q_tokens = shape.tokens,
             .kv_tokens = shape.tokens,
             .head_dim = shape.head_dim,
             .v_dim = shape.head_dim};
  c.mask = "causal";
  return c;
}

/// The oracle with its certified error, and the tolerance it gives a subject, over naive loops.
Json bench_oracle(const BenchShape& shape, Output& output) {
  Progress progress("oracle against naive loops");
  const verify::Case c = bench_case(shape, 1);
  const Problem problem = verify::make_problem(c);
  const AttentionTensors tensors = verify::make_tensors(c);
  const AttentionInput input = tensors.input(problem);
  const ExactForward exact = exact_forward(input);
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  const std::vector<Timing> timings = bench::time_in_turn(
      {{"naive double loops", [&] { bench::naive_attention(input); }},
       {"oracle, error certified", [&] { exact_forward(input); }},
       {"fast oracle", [&] { fast_forward(input); }},
       {"tolerance of a subject", [&] { forward_tolerance(input, exact, profile); }}},
      {shape.rounds,
       [&](int done, int total) { progress.update(done, total, "oracle against naive loops"); }});

  const double pairs = static_cast<double>(problem.mask.count_all());
  TextTable table({{"reference, 1 thread"},
                   {"ns per pair", Align::right},
                   {"time / naive (p10 to p90)", Align::right}});
  Json records = Json::array();
  for (const Timing& timing : timings) {
    const double ns_per_pair = timing.seconds.median / pairs * 1e9;
    table.add({timing.name, fmt::format("{:.1f}", ns_per_pair), spread_text(timing.ratio, 2)});
    records.push_back({{"name", timing.name},
                       {"ns_per_pair", ns_per_pair},
                       {"ratio", spread_json(timing.ratio)}});
  }
  output.print("\n{}", table.text());
  return records;
}

/// Every stage on the same problem: wall time over the first stage's, bytes and memory measured.
Json bench_stages(const BenchShape& shape, Output& output) {
  Progress progress("stages");
  const verify::Case c = bench_case(shape, shape.heads);
  const Problem problem = verify::make_problem(c);
  const AttentionTensors tensors = verify::make_tensors(c);
  const AttentionInput input = tensors.input(problem);
  RunOptions options;
  options.ranks = shape.ranks;
  options.layout = LayoutKind::zigzag;

  const std::vector<verify::Subject> subjects = verify::all_subjects();
  std::vector<RunResult> results(subjects.size());
  std::vector<bench::Contender> contenders;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    contenders.push_back(
        {subjects[i].name, [&, i] { results[i] = subjects[i].run(input, options); }});
  }
  const std::vector<Timing> timings = bench::time_in_turn(
      contenders,
      {shape.rounds, [&](int done, int total) { progress.update(done, total, "stages"); }});

  TextTable table({{fmt::format("stage, {} ranks", shape.ranks)},
                   {"time", Align::right},
                   {"time / first (p10 to p90)", Align::right},
                   {"sent by all, bytes", Align::right},
                   {"most K/V on a rank, bytes", Align::right},
                   {"most on a rank, bytes", Align::right}});
  Json records = Json::array();
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const report::RunTotals totals = report::totals_of(results[i]);
    table.add({timings[i].name, fmt::format("{:.1f} ms", timings[i].seconds.median * 1e3),
               spread_text(timings[i].ratio, 2), fmt::format("{}", totals.sent_bytes),
               fmt::format("{}", totals.peak_kv_bytes), fmt::format("{}", totals.peak_bytes)});
    records.push_back({{"stage", timings[i].name},
                       {"seconds", spread_json(timings[i].seconds)},
                       {"ratio", spread_json(timings[i].ratio)},
                       {"sent_bytes", totals.sent_bytes},
                       {"peak_kv_bytes", totals.peak_kv_bytes},
                       {"peak_bytes", totals.peak_bytes}});
  }
  output.print("\n{}", table.text());
  return records;
}

/// 256 rows of a causal problem of 2^20 tokens, once: what checking a million tokens costs.
Json bench_sampled_rows(const BenchShape& shape, Output& output) {
  constexpr std::int64_t kTokens = std::int64_t{1} << 20, kRows = 256;
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Progress progress("256 rows of a million tokens");
  verify::Case c = bench_case(shape, 1);
  c.shape.q_tokens = c.shape.kv_tokens = kTokens;
  const Problem problem = verify::make_problem(c);
  const AttentionTensors tensors = verify::make_tensors(c);
  ExactOptions options{.threads = threads};
  for (std::int64_t row = 1; row <= kRows; ++row) {
    options.rows.push_back(row * (kTokens / kRows) - 1);
  }
  const auto start = std::chrono::steady_clock::now();
  exact_forward(tensors.input(problem), options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  output.print("\n{} rows of {} tokens, head_dim {}, causal, {} threads: {:.1f} s\n", kRows,
               kTokens, shape.head_dim, threads, seconds);
  return {{"tokens", kTokens}, {"rows", kRows}, {"threads", threads}, {"seconds", seconds}};
}

int run_bench(Arguments& arguments) {
  if (!arguments.operands().empty()) {
    const std::string& what = arguments.operands()[0];
    if (what == "cpu") return bench_cpu(arguments);
    if (what == "gpu") return bench_gpu(arguments);
    throw_usage_error({"bench", "nothing, cpu or gpu", what, ""});
  }
  if (arguments.given("sweep")) return bench_sweep(arguments);
  if (arguments.given("auto")) return bench_auto(arguments);
  Output output(arguments);
  BenchShape shape;
  shape.tokens = arguments.take_integer("tokens", shape.tokens, 1, 65536);
  shape.heads = arguments.take_integer("heads", shape.heads, 1, 256);
  shape.head_dim = arguments.take_integer("head-dim", shape.head_dim, 1, 1024);
  shape.ranks = static_cast<int>(arguments.take_integer("ranks", shape.ranks, 1, 64));
  shape.rounds = static_cast<int>(arguments.take_integer("rounds", shape.rounds, 3, 1000));
  const bool sampled = arguments.take_switch("million");
  arguments.reject_unused();
  const Json configuration = {{"tokens", shape.tokens},     {"heads", shape.heads},
                              {"head_dim", shape.head_dim}, {"ranks", shape.ranks},
                              {"rounds", shape.rounds},     {"mask", "causal"},
                              {"layout", "zigzag"},         {"dtype", "f32"}};
  output.print_configuration(configuration);
  BenchRecord record(output, arguments, {{"configuration", configuration}});
  record.keep("oracle", bench_oracle(shape, output));
  record.keep("stages", bench_stages(shape, output));
  if (sampled) record.keep("sampled_rows", bench_sampled_rows(shape, output));
  record.finish();
  return 0;
}

}  // namespace

Command bench_command() {
  Command command{"bench", std::string(kBenchSummary)};
  command.operands = "[cpu|gpu]";
  command.max_operands = 1;
  command.options = {
      {"tokens", "N", "sequence length (1024)"},
      {"heads", "H", "heads of the stages' problem (4)"},
      {"head-dim", "D", "channels (64)"},
      {"ranks", "P", "ranks of the stages (4)"},
      {"rounds", "R", "measured rounds, each contender once per round (11)"},
      {"sweep", "NAME=A:B:xF",
       "only the engine, on tokens, heads, head-dim or ranks from A to B, each F times "
       "the last (or +S more): a line for each, with GB/s and verdict"},
      {"auto", "MACHINE",
       "only the engine: the way that `ringlab plan` chooses for a machine, a name or the file of "
       "`ringlab doctor --measure`, beside every fixed one"},
      {"million", "", "also time the oracle on 256 rows of 2^20 tokens"},
      json_option()};
  for (const OptionSpec& option : bench_goal_options()) command.options.push_back(option);
  command.examples = {"ringlab bench",
                      "ringlab bench --sweep tokens=4096:65536:x2",
                      "ringlab bench --auto laptop",
                      "ringlab bench cpu --quick --html bench.html",
                      "ringlab bench cpu --only C1,C3 --rounds 21",
                      "ringlab bench gpu --only G1,G2 --json gpu.json",
                      "ringlab bench gpu --ladder",
                      "ringlab bench gpu --overlap --quick",
                      "ringlab bench gpu --machine here.json",
                      "ringlab bench --tokens 4096 --ranks 8 --json bench.json"};
  command.more =
      "With cpu: how near the kernels come to the processor's peak and to other libraries, as "
      "goals of\ndocs/performance.md. What cannot be measured here is listed with the reason. With "
      "gpu: "
      "the same for\nthe kernels of a CUDA device.\n"
      "Contenders take turns in one process; ratios are taken within a round. Absolute times of a\n"
      "shared machine are not comparable from run to run, the ratios are.";
  command.run = run_bench;
  return command;
}

/// The one command of the program ringlab-bench, which `ringlab bench` starts.
const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {bench_command()};
  return commands;
}

}  // namespace ringlab::cli
