#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/cpu/widths.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"

namespace ringlab::cli {
namespace {

Json widths_json(const bench::Widths& widths) {
  Json json = {{"head_dims", widths.head_dims}, {"kernels", Json::array()}};
  for (const bench::WidthKernel& kernel : widths.kernels) {
    Json one = {{"name", kernel.name}, {"peak", kernel.peak}, {"shares", Json::array()}};
    for (const bench::Spread& share : kernel.shares) {
      one["shares"].push_back({{"value", share.median}, {"spread", spread_json(share)}});
    }
    json["kernels"].push_back(one);
  }
  return json;
}

void print_widths(const bench::Widths& widths, Output& output) {
  std::vector<Column> columns = {{"head_dim", Align::right}};
  for (const bench::WidthKernel& kernel : widths.kernels) {
    columns.push_back({kernel.name, Align::right});
  }
  TextTable table(columns);
  for (std::size_t i = 0; i < widths.head_dims.size(); ++i) {
    std::vector<std::string> row = {fmt::format("{}", widths.head_dims[i])};
    for (const bench::WidthKernel& kernel : widths.kernels) {
      row.push_back(fmt::format("{:.2f}", kernel.shares[i].median));
    }
    table.add(row);
  }
  output.print("\n{}", table.text());
  for (const bench::WidthKernel& kernel : widths.kernels) {
    output.print("{}: share of the peak, {}\n", kernel.name, kernel.peak);
  }
}

}  // namespace

void bench_widths(const bench::Plan& plan, BenchRecord& record, Output& output) {
  bench::WidthOptions options{.rounds = plan.rounds};
  if (plan.quick) options.tokens = 512;
  std::atomic<std::int64_t> done = 0;
  constexpr std::int64_t kWhole = 1000;
  options.progress = [&](double share) { done = std::llround(share * kWhole); };
  const bench::Widths widths = [&] {
    const Progress progress("timing every head_dim", {&done, kWhole});
    return bench::measure_widths(options);
  }();
  print_widths(widths, output);
  record.keep("widths", widths_json(widths));
  record.finish();
}

}  // namespace ringlab::cli
