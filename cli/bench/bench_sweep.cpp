// `ringlab bench --sweep tokens=4096:65536:x2`: the engine at growing sizes, a line for each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>
#include <thread>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/measure/timing.h"
#include "cli/inputs/problem_options.h"
#include "cli/line/words.h"
#include "cli/report/human.h"
#include "cli/report/totals.h"
#include "property_tests/case.h"
#include "property_tests/sampled_check.h"
#include "property_tests/subject_list.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kCheckedRows = 16;
struct Swept {
  const char* name;
  std::int64_t most;
};
constexpr std::array<Swept, 4> kSwept = {
    {{"tokens", 1 << 20}, {"heads", 256}, {"head-dim", 1024}, {"ranks", 64}}};

std::int64_t limit_of(const std::string& name) {
  return std::ranges::find(kSwept, name, &Swept::name)->most;
}

struct SweptShape {
  std::int64_t tokens = 4096, heads = 4, head_dim = 64, ranks = 4;

  std::int64_t& of(const std::string& name) {
    return name == "tokens" ? tokens : name == "heads" ? heads : name == "ranks" ? ranks : head_dim;
  }
};

/// The size that --sweep varies, and its values.
struct Sweep {
  std::string name;
  std::vector<std::int64_t> values;
};

[[noreturn]] void refuse_sweep(const std::string& found) {
  throw_usage_error({"--sweep",
                     "NAME=FIRST:LAST:xFACTOR or NAME=FIRST:LAST:+STEP, NAME one of tokens, heads, "
                     "head-dim, ranks",
                     fmt::format("\"{}\"", found), "For example tokens=4096:65536:x2."});
}

Sweep sweep_of(const std::string& text) {
  static const std::regex form("(tokens|heads|head-dim|ranks)=([0-9]+):([0-9]+):([x+])([0-9]+)");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) refuse_sweep(text);
  const std::int64_t most = limit_of(parts[1]);
  const bool multiplies = parts[4] == "x";
  const std::int64_t first = parse_integer("sweep", parts[2], 1, most);
  const std::int64_t last = parse_integer("sweep", parts[3], first, most);
  const std::int64_t step = parse_integer("sweep", parts[5], multiplies ? 2 : 1, most);
  Sweep sweep{.name = parts[1], .values = {}};
  for (std::int64_t value = first; value <= last;) {
    sweep.values.push_back(value);
    value = multiplies ? value * step : value + step;
  }
  return sweep;
}

/// Time, traffic and accuracy of the engine at one size.
struct SweptSize {
  SweptShape shape;
  bench::Spread seconds;
  double flops = 0;
  std::int64_t sent_bytes = 0;
  double worst = 0;  ///< error over bound, of some rows
  bool right = true;

  double gigabytes_per_s() const { return static_cast<double>(sent_bytes) / seconds.median / 1e9; }
};

verify::Case swept_case(const SweptShape& shape) {
  verify::Case made;
  made.shape = {.batch = 1,
                .q_heads = shape.heads,
                .kv_heads = shape.heads,
                .q_tokens = shape.tokens,
                .kv_tokens = shape.tokens,
                .head_dim = shape.head_dim,
                .v_dim = shape.head_dim};
  made.mask = "causal";
  return made;
}

void check_some_rows(const verify::Subject& subject, const AttentionInput& input,
                     const RunOptions& options, const RunResult& result, SweptSize& size) {
  const Problem& problem = input.problem;
  const std::int64_t tokens = problem.shape.q_tokens;
  const std::vector<std::int64_t> rows = verify::sample_rows(
      make_layout(options, tokens, options.q_layout), std::min(kCheckedRows, tokens));
  const Positions chosen = Positions::from_list(rows);
  const Report report = verify::check_sampled(
      {.problem = problem,
       .profile = subject.profile(problem, options),
       .rows = rows,
       .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))},
      verify::groups_of(input),
      {shard_of<double>(result.output.out.view(), chosen),
       shard_of<double>(result.output.lse.view(), chosen)});
  size.worst = report.worst_ratio();
  size.right = report.passed();
}

SweptSize measured(const SweptShape& shape, int rounds) {
  const verify::Subject subject = verify::find_subject("optimized");
  const verify::Case made = swept_case(shape);
  check_fits_memory(made.shape);
  const Problem problem = verify::make_problem(made);
  const AttentionTensors tensors = verify::make_tensors(made);
  const AttentionInput input = tensors.input(problem);
  RunOptions options{.ranks = static_cast<int>(shape.ranks), .layout = LayoutKind::zigzag};
  options.tile_queries = subject.tile_queries;
  options.tile_keys = subject.tile_keys;
  options.threads = std::max(
      1, static_cast<int>(std::thread::hardware_concurrency()) / static_cast<int>(shape.ranks));
  RunResult result = subject.run(input, options);  // not measured
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    result = subject.run(input, options);
    seconds.push_back(result.seconds);
  }
  const double pairs = static_cast<double>(problem.mask.count_all() * shape.heads);
  SweptSize size{.shape = shape,
                 .seconds = bench::spread_of(std::move(seconds)),
                 .flops = 4 * pairs * static_cast<double>(shape.head_dim),
                 .sent_bytes = report::totals_of(result).sent_bytes};
  check_some_rows(subject, input, options, result, size);
  return size;
}

void print_size(const SweptSize& size, Output& output) {
  output.print("{:>9} {:>6} {:>9} {:>6} {:>10} {:>10.1f} {:>11} {:>8.3f} {:>12}  {}\n",
               size.shape.tokens, size.shape.heads, size.shape.head_dim, size.shape.ranks,
               report::human_seconds(size.seconds.median), size.flops / size.seconds.median / 1e9,
               report::human_bytes(size.sent_bytes), size.gigabytes_per_s(),
               report::human_ratio(size.worst), size.right ? "ok" : "WRONG");
  std::fflush(nullptr);  // whoever waits for the next size reads this one
}

Json size_json(const SweptSize& size) {
  return {{"tokens", size.shape.tokens},
          {"heads", size.shape.heads},
          {"head_dim", size.shape.head_dim},
          {"ranks", size.shape.ranks},
          {"seconds", spread_json(size.seconds)},
          {"flops_per_s", size.flops / size.seconds.median},
          {"sent_bytes", size.sent_bytes},
          {"sent_bytes_per_s", static_cast<double>(size.sent_bytes) / size.seconds.median},
          {"worst_ratio", json_number(size.worst)},
          {"right", size.right}};
}

}  // namespace

int bench_sweep(Arguments& arguments) {
  Output output(arguments);
  const Sweep sweep = sweep_of(*arguments.take_text("sweep"));
  SweptShape shape;
  for (const auto& [name, most] : kSwept) {
    if (name != sweep.name) shape.of(name) = arguments.take_integer(name, shape.of(name), 1, most);
  }
  const int rounds = static_cast<int>(arguments.take_integer("rounds", 5, 1, 1000));
  arguments.reject_unused();
  const Json configuration = {{"subject", "optimized"}, {"sweep", *arguments.take_text("sweep")},
                              {"rounds", rounds},       {"mask", "causal"},
                              {"layout", "zigzag"},     {"dtype", "f32"}};
  output.print_configuration(configuration);
  output.print("\n{:>9} {:>6} {:>9} {:>6} {:>10} {:>10} {:>11} {:>8} {:>12}\n", "tokens", "heads",
               "head_dim", "ranks", "time", "Gflop/s", "moved", "GB/s", "error/bound");
  BenchRecord record(output, arguments, {{"configuration", configuration}});
  Json sizes = Json::array();
  bool right = true;
  for (const std::int64_t value : sweep.values) {
    shape.of(sweep.name) = value;
    const SweptSize size = measured(shape, rounds);
    print_size(size, output);
    sizes.push_back(size_json(size));
    record.keep("sizes", sizes);
    right &= size.right;
  }
  record.finish();
  return right ? 0 : 1;
}

}  // namespace ringlab::cli
