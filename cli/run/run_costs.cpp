#include "cli/run/run_costs.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/inputs/problem_options.h"
#include "cli/report/human.h"
#include "reference/core/options/option_table.h"

namespace ringlab::cli {
namespace {

using Costs = std::vector<ring::EngineCosts>;

struct Figure {
  const char* name;
  std::int64_t RankStats::*measured;
  std::int64_t ring::EngineCosts::*expected;
};
constexpr std::array<Figure, 6> kFigures = {{
    {"sent_bytes", &RankStats::sent_bytes, &ring::EngineCosts::sent_bytes},
    {"sent_messages", &RankStats::sent_messages, &ring::EngineCosts::sent_messages},
    {"received_bytes", &RankStats::received_bytes, &ring::EngineCosts::received_bytes},
    {"received_messages", &RankStats::received_messages, &ring::EngineCosts::received_messages},
    {"peak_bytes", &RankStats::peak_bytes, &ring::EngineCosts::peak_bytes},
    {"peak_kv_bytes", &RankStats::peak_kv_bytes, &ring::EngineCosts::peak_kv_bytes},
}};

struct StatedFigure {
  const char* name;
  std::int64_t RankStats::*measured;
  std::int64_t StatedCosts::*expected;
};
constexpr std::array<StatedFigure, 3> kStatedFigures = {{
    {"sent_bytes", &RankStats::sent_bytes, &StatedCosts::sent_bytes},
    {"sent_messages", &RankStats::sent_messages, &StatedCosts::sent_messages},
    {"peak_kv_bytes", &RankStats::peak_kv_bytes, &StatedCosts::peak_kv_bytes},
}};

// Adds the figures that `costs` expects of each rank to its object in `document`; gives the first
// that was measured otherwise, or nothing.
std::string compare(const RunAccount& account, const auto& figures, const auto& costs,
                    Json& document) {
  std::string first;
  for (std::size_t rank = 0; rank < account.measured.size(); ++rank) {
    for (const auto& figure : figures) {
      const std::int64_t got = account.measured[rank]->*figure.measured;
      const std::int64_t due = costs[rank].*figure.expected;
      document["ranks"][rank][fmt::format("expected_{}", figure.name)] = due;
      if (got == due || !first.empty()) continue;
      first = fmt::format("{} of rank {} is {}, its closed form {}", figure.name, rank, got, due);
    }
  }
  document["as_expected"] = first.empty();
  return first;
}

// A figure that only some subjects state: the counted number, and the stated one.
struct CountedFigure {
  const char* name;
  const char* title;
  std::int64_t RankStats::*measured;
  std::optional<std::int64_t> StatedCosts::*expected;
};
constexpr std::array<CountedFigure, 2> kCountedFigures = {{
    {"exchanges", "exchanges", &RankStats::exchanges, &StatedCosts::exchanges},
    {"node_messages", "messages to other nodes", &RankStats::node_messages,
     &StatedCosts::node_messages},
}};

// Prints a line for each CountedFigure that is stated, and adds them to the ranks of `document`.
void compare_counted(const RunAccount& account, const std::vector<StatedCosts>& costs,
                     Json& document, Output& output) {
  for (const CountedFigure& figure : kCountedFigures) {
    std::int64_t most = 0, most_due = 0;
    bool is_right = true;
    for (std::size_t rank = 0; rank < costs.size(); ++rank) {
      const std::int64_t got = account.measured[rank]->*figure.measured;
      const std::optional<std::int64_t> due = costs[rank].*figure.expected;
      document["ranks"][rank][figure.name] = got;
      if (due) document["ranks"][rank][fmt::format("expected_{}", figure.name)] = *due;
      is_right = is_right && (!due || *due == got);
      most = std::max(most, got);
      most_due = std::max(most_due, due.value_or(0));
    }
    if (!is_right) document["as_expected"] = false;
    if (costs.empty() || !(costs.front().*figure.expected)) continue;
    output.print("closed forms  {} of a rank at most: {} counted, {} stated{}\n", figure.title,
                 most, most_due, is_right ? "" : "; NOT as computed");
  }
}

void print_comparison(const char* what, const std::string& difference, Output& output) {
  output.print("closed forms  {}\n", difference.empty()
                                         ? fmt::format("{} of every rank are as computed", what)
                                         : "NOT as computed: " + difference);
}

}  // namespace

Given given_bytes(const RunAccount& account, int rank) {
  const Shape& s = account.problem.shape;
  const auto held = [&](std::int64_t tokens, const std::optional<Layout>& layout) {
    return s.batch * make_layout(account.options, tokens, layout).positions(rank).size();
  };
  const std::int64_t rows = s.q_heads * held(s.q_tokens, account.options.q_layout);
  const std::int64_t keys = s.kv_heads * held(s.kv_tokens, account.options.kv_layout);
  const std::int64_t element = dtype_info(account.problem.dtype).bytes;
  const std::int64_t lse_element = accumulator_bytes(account.problem.dtype);
  const std::int64_t qkv = (rows * s.head_dim + keys * (s.head_dim + s.v_dim)) * element;
  const std::int64_t o = rows * s.v_dim * element, lse = rows * lse_element;
  if (account.last_pass == Pass::forward) return {.inputs = qkv, .outputs = o + lse};
  return {.inputs = qkv + o, .outputs = o + lse + qkv};
}

namespace {

std::int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

Costs costs_of(const RunAccount& account) {
  return ring::engine_costs(account.problem, account.options, account.last_pass);
}

std::int64_t expected_memory(const RunAccount& account, const Costs& costs) {
  std::int64_t bytes = 0;
  for (int rank = 0; rank < account.options.ranks; ++rank) {
    const Given given = given_bytes(account, rank);
    bytes += given.inputs + given.outputs + costs[static_cast<std::size_t>(rank)].peak_bytes;
  }
  return bytes;
}

// Bytes of bookkeeping for messages, where all of them can be under way at once: most of the memory
// with thousands of ranks.
std::int64_t overhead_of_messages(const RunAccount& account, const Costs& costs) {
  constexpr std::int64_t kBytesPerMessage = 512;  // 400 to 450 were measured
  if (!schedule_traits(account.options.schedule).holds_all) return 0;
  std::int64_t messages = 0;
  for (const ring::EngineCosts& rank : costs) messages += rank.sent_messages;
  return messages * kBytesPerMessage;
}

Json wire_json(const RunAccount& account, const Costs& costs) {
  std::array<std::int64_t, 4> sums = {};
  for (std::size_t rank = 0; rank < account.measured.size(); ++rank) {
    sums[0] += account.measured[rank]->sent_bytes;
    sums[1] += costs[rank].sent_bytes;
    sums[2] += account.measured[rank]->sent_messages;
    sums[3] += costs[rank].sent_messages;
  }
  return {{"format", word_of(run_option("wire"), account.options)},
          {"integrity", word_of(run_option("integrity"), account.options)},
          {"sent_bytes", sums[0]},
          {"expected_sent_bytes", sums[1]},
          {"sent_messages", sums[2]},
          {"expected_sent_messages", sums[3]}};
}

}  // namespace

void report_costs(const RunAccount& account, Json& document, Output& output) {
  const Costs costs = costs_of(account);
  for (std::size_t rank = 0; rank < account.measured.size(); ++rank) {
    Json& json = document["ranks"][rank];
    const Given given = given_bytes(account, static_cast<int>(rank));
    json["input_bytes"] = given.inputs;
    json["output_bytes"] = given.outputs;
    json["memory_bytes"] = given.inputs + given.outputs + account.measured[rank]->peak_bytes;
  }
  document["wire"] = wire_json(account, costs);
  print_comparison("bytes, messages and peak memory", compare(account, kFigures, costs, document),
                   output);
}

void report_stated_costs(const verify::Subject& subject, const RunAccount& account, Json& document,
                         Output& output) {
  std::vector<StatedCosts> costs;
  for (int rank = 0; rank < account.options.ranks; ++rank) {
    costs.push_back(subject.costs(account.problem, account.options, rank));
  }
  print_comparison("bytes, messages and K/V held",
                   compare(account, kStatedFigures, costs, document), output);
  compare_counted(account, costs, document, output);
}

void check_run_fits_memory(const RunAccount& account, std::int64_t check_bytes) {
  // Inputs and outputs first: counting who needs what takes a while where even they do not fit.
  std::int64_t ends = 0;
  for (int rank = 0; rank < account.options.ranks; ++rank) {
    const Given given = given_bytes(account, rank);
    ends += given.inputs + given.outputs;
  }
  check_fits_memory(account.problem.shape, static_cast<double>(ends));
  const Costs costs = costs_of(account);
  const std::int64_t bytes =
      std::max(expected_memory(account, costs) + overhead_of_messages(account, costs), check_bytes);
  check_fits_memory(account.problem.shape, static_cast<double>(bytes));
}

void report_memory(const RunAccount& account, Json& document, Output& output) {
  const std::int64_t expected = expected_memory(account, costs_of(account));
  const std::int64_t resident = peak_resident_bytes();
  const double ratio =
      static_cast<double>(resident) / static_cast<double>(std::max<std::int64_t>(expected, 1));
  document["expected_memory_bytes"] = expected;
  document["peak_resident_bytes"] = resident;
  document["resident_ratio"] = ratio;
  output.print(
      "memory  {} for all ranks by the closed forms, inputs and outputs included; resident at most "
      "{}, {:.2f} times\n",
      report::human_bytes(expected), report::human_bytes(resident), ratio);
}

}  // namespace ringlab::cli
