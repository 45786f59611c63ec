#include "cli/run/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr int kMostRanks = 1024;  // one thread each
constexpr std::int64_t kMostTile = 1024;
constexpr std::int64_t kMostThreads = 1024;
constexpr double kLongestTimeoutSeconds = 1e6;

constexpr int kMostSlots = 1024;

const std::vector<std::pair<std::string, WireFormat>> kWires = {{"exact", WireFormat::exact},
                                                                {"f32", WireFormat::f32},
                                                                {"bf16", WireFormat::bf16},
                                                                {"fp8", WireFormat::fp8}};

// Where all chunks are held --slots stays unused, and is refused as such.
void take_schedule(Arguments& arguments, RunOptions& options) {
  const ScheduleSpec spec = parse_schedule(arguments.take_text("schedule").value_or("ring"));
  options.schedule = spec.kind;
  options.node_ranks = spec.node_ranks;
  if (spec.node_ranks > options.ranks) {
    throw_usage_error({"--schedule",
                       fmt::format("double:W with W of at most {}, the ranks", options.ranks),
                       schedule_name(spec), "With W = P it is one ring."});
  }
  if (schedule_traits(spec.kind).holds_all) return;
  options.slots = static_cast<int>(arguments.take_integer("slots", options.slots, 1, kMostSlots));
}

std::string wire_name(WireFormat wire) {
  for (const auto& [name, format] : kWires) {
    if (format == wire) return name;
  }
  return "unknown";
}

std::string transport_name(TransportKind transport) {
  switch (transport) {
    case TransportKind::threads:
      return "threads";
    case TransportKind::simulated:
      return "simulated";
    case TransportKind::mpi:
      return "mpi";
    case TransportKind::nccl:
      return "nccl";
  }
  return "";
}

}  // namespace

std::vector<OptionSpec> run_option_specs() {
  return {
      {"ranks", "P", "number of ranks, 1 … 1024"},
      {"layout", "LAYOUT", "contiguous, striped or zigzag: which tokens each rank holds"},
      {"direction", "WAY", "next or previous: where rings send their chunks (next)"},
      {"schedule", "NAME", "broadcast, allgather, ring, bidirectional or double:W (ring)"},
      {"slots", "S", "chunks a rank can hold besides its own, per direction, 1 … 1024 (2)"},
      {"wire", "FORMAT", "K and V between ranks: exact, f32, bf16 or fp8 (exact)"},
      {"integrity", "MODE", "headers, or full: every message with a checksum (headers)"},
      {"transport", "KIND",
       "threads; simulated: one rank at a time, random delays; mpi: started by mpirun; nccl: the "
       "same with a device each, or with --meet (threads)"},
      {"delay-seed", "S", "of the simulated delays (0)", "with --transport simulated"},
      {"device", "DEVICE", "cpu or cuda (cpu)"},
      {"tile-queries", "N", "rows of a query tile, 1 … 1024 (32; optimized: 192)"},
      {"tile-keys", "N", "keys of a key/value tile, 1 … 1024 (32; optimized: 128)"},
      {"threads", "N", "threads of each rank, 1 … 1024 (optimized: cores / ranks; with mpi: 1)"},
      {"timeout", "S",
       "seconds a rank may wait for a message; on devices, for all that they do, or each kernel of "
       "stages 01 to 06 (60)",
       "with --transport threads, mpi or nccl, or --device cuda"},
  };
}

/// Ranks in this process share its cores.
int default_threads(const RunOptions& options, const RunDefaults& defaults) {
  if (!defaults.many_threads || options.transport != TransportKind::threads) return 1;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.ranks);
}

/// Simulated ranks have a clock of their own, which devices do not follow.
bool has_deadline(const RunOptions& options) {
  return options.transport != TransportKind::simulated || options.device == DeviceKind::cuda;
}

WireFormat take_wire(Arguments& arguments) {
  return arguments.take_choice<WireFormat>("wire", WireFormat::exact, kWires);
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
  take_schedule(arguments, options);
  options.wire = take_wire(arguments);
  options.integrity = arguments.take_choice<Integrity>(
      "integrity", Integrity::headers,
      {{"headers", Integrity::headers}, {"full", Integrity::full}});
  options.transport = arguments.take_choice<TransportKind>("transport", TransportKind::threads,
                                                           {{"threads", TransportKind::threads},
                                                            {"simulated", TransportKind::simulated},
                                                            {"mpi", TransportKind::mpi},
                                                            {"nccl", TransportKind::nccl}});
  options.device = arguments.take_choice<DeviceKind>(
      "device", DeviceKind::cpu, {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}});
  options.tile_queries =
      arguments.take_integer("tile-queries", defaults.tile_queries, 1, kMostTile);
  options.tile_keys = arguments.take_integer("tile-keys", defaults.tile_keys, 1, kMostTile);
  options.threads = static_cast<int>(
      arguments.take_integer("threads", default_threads(options, defaults), 1, kMostThreads));
  if (options.transport == TransportKind::simulated) {
    options.delay_seed = arguments.take_unsigned("delay-seed", 0);
  }
  if (has_deadline(options)) {
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
  configuration["schedule"] = schedule_name(schedule_spec(options));
  configuration["slots"] = options.slots;
  configuration["wire"] = wire_name(options.wire);
  configuration["integrity"] = options.integrity == Integrity::full ? "full" : "headers";
  configuration["transport"] = transport_name(options.transport);
  if (simulated) {
    configuration["delay_seed"] = options.delay_seed;
  }
  if (has_deadline(options)) {
    configuration["timeout_s"] = options.timeout_s;
  }
  configuration["device"] = options.device == DeviceKind::cpu ? "cpu" : "cuda";
  configuration["threads"] = options.threads;
  configuration["tile_queries"] = options.tile_queries;
  configuration["tile_keys"] = options.tile_keys;
}

}  // namespace ringlab::cli
