#include "cli/run_options.h"

namespace ringlab::cli {
namespace {

constexpr int kMostRanks = 1024;  // one thread each
constexpr std::int64_t kMostTile = 1024;
constexpr double kLongestTimeoutSeconds = 1e6;

}  // namespace

std::vector<OptionSpec> run_option_specs() {
  return {
      {"ranks", "P", "number of ranks, 1 … 1024"},
      {"layout", "LAYOUT", "contiguous, striped or zigzag: which tokens each rank holds"},
      {"direction", "WAY", "next or previous: where rings send their chunks (next)"},
      {"transport", "KIND", "threads, or simulated: one rank at a time, random delays (threads)"},
      {"delay-seed", "S", "of the simulated delays (0)", "with --transport simulated"},
      {"device", "DEVICE", "cpu or cuda (cpu)"},
      {"tile-queries", "N", "rows of a query tile, 1 … 1024 (32)"},
      {"tile-keys", "N", "keys of a key/value tile, 1 … 1024 (32)"},
      {"timeout", "S", "seconds a rank may wait for a message (60)", "with --transport threads"},
  };
}

RunOptions take_run_options(Arguments& arguments, const RunDefaults& defaults) {
  RunOptions options;
  options.ranks = static_cast<int>(arguments.take_integer("ranks", defaults.ranks, 1, kMostRanks));
  options.layout = arguments.take_choice<LayoutKind>("layout", defaults.layout,
                                                     {{"contiguous", LayoutKind::contiguous},
                                                      {"striped", LayoutKind::striped},
                                                      {"zigzag", LayoutKind::zigzag}});
  options.direction = arguments.take_choice<RingDirection>(
      "direction", RingDirection::next,
      {{"next", RingDirection::next}, {"previous", RingDirection::previous}});
  options.transport = arguments.take_choice<TransportKind>(
      "transport", TransportKind::threads,
      {{"threads", TransportKind::threads}, {"simulated", TransportKind::simulated}});
  options.device = arguments.take_choice<DeviceKind>(
      "device", DeviceKind::cpu, {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}});
  options.tile_queries = arguments.take_integer("tile-queries", options.tile_queries, 1, kMostTile);
  options.tile_keys = arguments.take_integer("tile-keys", options.tile_keys, 1, kMostTile);
  if (options.transport == TransportKind::simulated) {
    options.delay_seed = arguments.take_unsigned("delay-seed", 0);
  } else {
    options.timeout_s =
        arguments.take_real("timeout", options.timeout_s, 1e-6, kLongestTimeoutSeconds);
  }
  return options;
}

void describe_run_options(const RunOptions& options, Json& configuration) {
  const bool simulated = options.transport == TransportKind::simulated;
  configuration["ranks"] = options.ranks;
  configuration["layout"] = std::string(layout_name(options.layout));
  configuration["direction"] = options.direction == RingDirection::next ? "next" : "previous";
  configuration["transport"] = simulated ? "simulated" : "threads";
  if (simulated) {
    configuration["delay_seed"] = options.delay_seed;
  } else {
    configuration["timeout_s"] = options.timeout_s;
  }
  configuration["device"] = options.device == DeviceKind::cpu ? "cpu" : "cuda";
  configuration["tile_queries"] = options.tile_queries;
  configuration["tile_keys"] = options.tile_keys;
}

}  // namespace ringlab::cli
