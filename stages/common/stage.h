// A stage as a value: its name, what it teaches, and one entry point for every dtype.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::stages {

/// Facts that a stage states of itself, in its header.
struct StageFacts {
  const char* idea = "";  ///< one sentence
  /// Closed forms of what `rank` sends and holds.
  StatedCosts (*costs)(const Problem& problem, const RunOptions& options, int rank) = nullptr;
  bool skips_empty_blocks = false;  ///< hops with nothing to compute are not computed
  bool ring_traffic = false;        ///< K/V travel neighbour to neighbour
  /// The order in which its ranks meet chunks. Where it has nodes, RunOptions::node_ranks counts.
  ScheduleKind schedule = ScheduleKind::ring;
  bool queries_travel = false;  ///< ranks compute rows of others: visits are not about their own
  bool prefetches = false;      ///< has RunOptions::slots places for chunks beside its own
  bool backward = false;        ///< gives gradients when AttentionInput::dout is set
  bool tensor_cores = false;    ///< on devices, where they take the problem: approximate powers
  bool cpu_only = false;        ///< has no device kernel: a usage error on other devices
  /// The run on GPUs by one thread that drives all ranks; null: the ranks launch its kernel.
  RunResult (*on_gpus)(const AttentionInput& input, const RunOptions& options) = nullptr;
};

struct Stage : StageFacts {
  std::string id;    ///< "05"
  std::string name;  ///< "ring"
  /// Runs on options.ranks in-process ranks. Usage error when dtype or device is not supported.
  RunResult (*run)(const AttentionInput& input, const RunOptions& options) = nullptr;
  /// Numerics it promises for this problem and these options.
  NumericsProfile (*profile)(const Problem& problem, const RunOptions& options) = nullptr;
};

/// The stages of stages/stages.txt, in order.
const std::vector<Stage>& all_stages();

}  // namespace ringlab::stages
