// The goals of devices, and what is measured for each.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/gpu/gpu_case.h"
#include "cli/bench/measure/goal.h"

namespace ringlab::bench {

/// A goal that compares attention on the device with a peer's.
struct GpuMatch {
  Goal goal;
  GpuCase attention;
  std::string backend;  ///< of the peer: "cudnn", "flash"
};

/// G1 to G5.
const std::vector<GpuMatch>& gpu_matches();

/// Ranks of G7, chunks in tokens of G9.
inline constexpr int kRingRanks[] = {2, 4, 8};
inline constexpr std::int64_t kHopChunks[] = {1024, 2048, 4096, 8192, 16384, 32768};
/// G7: a rank's tokens.
std::int64_t ring_chunk(bool quick);

/// Ids of the goals without a GpuMatch.
std::string ring_goal(int ranks);           ///< "G7.p4"
std::string hop_goal(HopFrom from);         ///< "G8.host"
std::string step_goal(std::int64_t chunk);  ///< "G9.c4k"
inline constexpr const char* kLinesGoal = "G6.lines";
inline constexpr const char* kLinesShareGoal = "G6.share";
/// The goal of G1 whose peer decides kLinesShareGoal.
inline constexpr const char* kLinesCase = "G1.t16k";

/// All goals of devices, in order.
const std::vector<Goal>& gpu_goals();

}  // namespace ringlab::bench
