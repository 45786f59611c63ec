// The measurements of `ringlab bench`, and the record, options and tables that they share.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/measure/families.h"
#include "cli/bench/measure/goal.h"
#include "cli/bench/measure/page.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// The document of --json FILE, written anew with every part, so that measured figures stay if the
/// program is ended. "complete" says whether the run came to its end. `output` outlives it.
class BenchRecord {
 public:
  /// `head`: the fields known before anything is measured. They are written with the first part,
  /// after the date, the command line and what `ringlab doctor` says of this machine.
  BenchRecord(Output& output, const Arguments& arguments, const Json& head);

  /// Sets `part` to `value`, in place of its earlier value.
  void keep(const std::string& part, const Json& value);
  /// Marks the record as complete.
  void finish();

 private:
  Output& output_;
  Json document_ = {{"complete", false}};
};

/// --quick, --rounds, --only (of `goals`) and --torch-python as a plan.
bench::Plan take_plan(Arguments& arguments, const std::vector<bench::Goal>& goals);
/// Usage error for --only: what `option` measures has no goals.
void refuse_goals_beside(const Arguments& arguments, const std::string& option);
/// Shows a bar on a terminal and keeps the outcomes known so far as "goals" of the record.
std::vector<bench::GoalOutcome> measure_with_progress(
    const bench::Plan& plan, const std::vector<bench::GoalFamily>& families, BenchRecord& record);

/// Prints a table of goals, and why some were skipped.
void print_goals(const std::vector<bench::GoalOutcome>& outcomes, Output& output);
/// Prints the figures; nothing for a table without rows.
void print_figures(const bench::FigureTable& figures, Output& output);

/// "1.234 (1.200 to 1.300)": the median, and from the 10th to the 90th percentile.
std::string spread_text(const bench::Spread& spread, int digits);
Json spread_json(const bench::Spread& spread);
Json goals_json(const std::vector<bench::GoalOutcome>& outcomes);

/// Fills in the configuration and the build, writes the page and says where it is.
void write_page(const std::string& path, const Json& configuration, bench::BenchReport report,
                Output& output);

/// The options of `bench` that `bench cpu` and `bench gpu` alone take.
std::vector<OptionSpec> bench_goal_options();

/// Measures the goals of docs/performance.md, prints a table and writes JSON and a page where asked
/// for. Missing a goal is no failure: the exit code is 0.
int bench_cpu(Arguments& arguments);

/// Measures the engine at every size of --sweep and checks some rows: a line for each as soon as it
/// is known. Exit code 1 where one is wrong.
int bench_sweep(Arguments& arguments);

/// Times the way that a plan chooses for the machine of --auto beside every fixed one. Results are
/// not checked: tests do that.
int bench_auto(Arguments& arguments);

/// Measures with the rounds and sizes of `plan`, prints a table and finishes the record.
void bench_widths(const bench::Plan& plan, BenchRecord& record, Output& output);

/// Measures the goals of devices, prints tables and writes JSON and a page where asked for. Missing
/// a goal is no failure. Environment error without CUDA or without a device.
int bench_gpu(Arguments& arguments);

/// Measures with the rounds and sizes of `plan` and prints a table for each case. "ladders" of the
/// record grow by one after another.
void bench_ladder(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                  Output& output);

/// Measures with the rounds and sizes of `plan`, prints a table and writes the machine to `path`,
/// named as the file is. "speeds" of the record grow by one row after another.
void bench_machine(const std::string& path, const bench::GpuBench& bench, const bench::Plan& plan,
                   BenchRecord& record, Output& output);

/// Measures with the rounds and sizes of `plan` and prints a table. "overlaps" of the record grow
/// by one row after another.
void bench_overlap(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                   Output& output);

}  // namespace ringlab::cli
