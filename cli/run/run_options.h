// From the command line to RunOptions: ranks, layout, transport, device, tiles, deadline.
#pragma once

#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// The options that take_run_options() takes.
std::vector<OptionSpec> run_option_specs();

struct RunDefaults {
  int ranks = 1;
  LayoutKind layout = LayoutKind::contiguous;
  int tile_queries = 32, tile_keys = 32;
  bool many_threads = false;  ///< as many threads a rank as there are cores for it
};
RunOptions take_run_options(Arguments& arguments, const RunDefaults& defaults);
/// Only --wire of them.
WireFormat take_wire(Arguments& arguments);

void describe_run_options(const RunOptions& options, Json& configuration);

}  // namespace ringlab::cli
