#include "cli/run/run_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "cli/inputs/problem_options.h"
#include "cli/report/human.h"

namespace ringlab::cli {
namespace {

std::int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace

std::int64_t expected_memory(const RunAccount& account) {
  std::int64_t bytes = 0;
  const auto costs = ring::engine_costs(account.problem, account.options, account.last_pass);
  for (int rank = 0; rank < account.options.ranks; ++rank) {
    const Given given = given_bytes(account, rank);
    bytes += given.inputs + given.outputs + costs[static_cast<std::size_t>(rank)].peak_bytes;
  }
  return bytes;
}

void check_run_fits_memory(const RunAccount& account, std::int64_t check_bytes) {
  // Inputs and outputs first: counting who needs what takes a while where even they do not fit.
  std::int64_t ends = 0;
  for (int rank = 0; rank < account.options.ranks; ++rank) {
    const Given given = given_bytes(account, rank);
    ends += given.inputs + given.outputs;
  }
  check_fits_memory(account.problem.shape, static_cast<double>(ends));
  const std::int64_t bytes = std::max(expected_memory(account), check_bytes);
  check_fits_memory(account.problem.shape, static_cast<double>(bytes));
}

void report_memory(const RunAccount& account, Json& document, Output& output) {
  const std::int64_t expected = expected_memory(account), resident = peak_resident_bytes();
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
