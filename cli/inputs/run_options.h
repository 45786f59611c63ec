// The rows of option_table.h as options of commands: listed, taken into RunOptions, and echoed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "reference/core/options/option_table.h"

namespace ringlab::cli {

/// A row of the table as an option, perhaps with a default of the command's own.
OptionSpec option_spec(std::string_view word, std::string_view otherwise = "");
/// The rows of these sections, in the order of the table; without any, all rows.
std::vector<OptionSpec> option_specs(const std::vector<OptionGroup>& groups = {});
bool is_in(const std::vector<OptionGroup>& groups, const RunOption& option);

/// A whole number within the limits of its row.
std::int64_t take_whole(Arguments& arguments, std::string_view word, std::int64_t fallback);
double take_number(Arguments& arguments, std::string_view word, double fallback);
/// Takes any option that sets a field.
void take_run_option(Arguments& arguments, const RunOption& option, RunOptions& options);

struct RunDefaults {
  int ranks = 1;
  int most_ranks = 0;  ///< where nothing is executed; 0: as the row says
  LayoutKind layout = LayoutKind::contiguous;
  ScheduleKind schedule = ScheduleKind::ring;
  int tile_queries = 32, tile_keys = 32;
  bool many_threads = false;  ///< as many threads a rank as there are cores for it
};
/// All options that set fields and have an effect beside the others; the rest stays unused.
RunOptions take_run_options(Arguments& arguments, const RunDefaults& defaults);

/// Appends the options that set fields and have an effect, or those of them that are asked for.
void describe_run_options(const RunOptions& options, Json& configuration,
                          const std::function<bool(const RunOption&)>& is_wanted = {});

/// Names, in a configuration, of options that the command line leaves to their defaults.
std::set<std::string> left_to_defaults(const Arguments& arguments);

}  // namespace ringlab::cli
