// What `ringlab bench cpu` and `bench gpu` have in common: options, and goals on their way out.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/bench_record.h"
#include "cli/bench/measure/families.h"
#include "cli/bench/measure/figures.h"
#include "cli/bench/measure/page.h"
#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// --quick, --rounds, --only (of `goals`) and --torch-python as a plan.
bench::Plan take_plan(Arguments& arguments, const std::vector<bench::Goal>& goals);
/// Usage error for --only: what `option` measures has no goals.
void refuse_goals_beside(const Arguments& arguments, const std::string& option);
/// With a bar where there is a terminal; "goals" of the record are those known so far.
std::vector<bench::Outcome> measure_with_progress(const bench::Plan& plan,
                                                  const std::vector<bench::Family>& families,
                                                  BenchRecord& record);

/// A table, and the reasons of what was skipped.
void print_goals(const std::vector<bench::Outcome>& outcomes, Output& output);
/// Nothing for a table without rows.
void print_figures(const bench::FigureTable& figures, Output& output);

Json spread_json(const bench::Spread& spread);
Json goals_json(const std::vector<bench::Outcome>& outcomes);

/// Fills in the configuration and the build, writes the page and says where it is.
void write_page(const std::string& path, const Json& configuration, bench::BenchReport report,
                Output& output);

}  // namespace ringlab::cli
