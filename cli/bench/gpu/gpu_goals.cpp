#include "cli/bench/gpu/gpu_goals.h"

#include <fmt/format.h>

#include "reference/core/schedule/operation_words.h"

namespace ringlab::bench {
namespace {

/// The bound of a goal, which must be reached, and its target, which is hoped for.
struct Limits {
  double bound;
  double target;
};

void add_match(std::vector<GpuMatch>& all, const std::string& family, const GpuCase& one,
               Limits limits) {
  const bool flash = family == "G3";
  const bool both_masks = family == "G3" || family == "G4" || family == "G5";
  std::string id = family + (both_masks ? "." + one.mask : "");
  if (flash) id += fmt::format(".d{}", one.head_dim);
  if (!flash) id += ".t" + tokens_text(one.tokens);
  const std::string what =
      fmt::format("{}'s time over ours, {} bf16 {}", flash ? "FlashAttention-2" : "cuDNN",
                  pass_name(one.pass), one.text());
  all.push_back({{id, what, kTimes, limits.bound, limits.target}, one, flash ? "flash" : "cudnn"});
}

std::vector<GpuMatch> make_matches() {
  constexpr std::int64_t k = 1024;
  std::vector<GpuMatch> all;
  for (const std::int64_t tokens : {4 * k, 8 * k, 16 * k, 32 * k}) {
    add_match(all, "G1", {.tokens = tokens}, {0.92, 1.00});
  }
  for (const std::int64_t tokens : {8 * k, 16 * k, 32 * k}) {
    add_match(all, "G2", {.mask = "causal", .tokens = tokens}, {0.90, 1.00});
  }
  for (const std::int64_t head_dim : {128, 64}) {
    for (const char* mask : {"full", "causal"}) {
      add_match(all, "G3", {.mask = mask, .tokens = 16 * k, .head_dim = head_dim}, {1.7, 1.9});
    }
  }
  for (const char* mask : {"full", "causal"}) {
    for (const std::int64_t tokens : {4 * k, 16 * k}) {
      add_match(all, "G4", {.mask = mask, .tokens = tokens, .head_dim = 64}, {1.00, 1.10});
    }
  }
  for (const char* mask : {"full", "causal"}) {
    for (const std::int64_t tokens : {8 * k, 16 * k}) {
      add_match(all, "G5", {.pass = Pass::backward, .mask = mask, .tokens = tokens}, {0.85, 0.95});
    }
  }
  return all;
}

std::vector<Goal> make_goals() {
  std::vector<Goal> all;
  for (const GpuMatch& match : gpu_matches()) all.push_back(match.goal);
  all.push_back({kLinesGoal, "lines of the file that the forward kernel for Hopper is", "lines",
                 800, 800, Sense::at_most});
  all.push_back({kLinesShareGoal, "the same file: cuDNN's time over its own, full, 16k tokens",
                 kTimes, 0.85, 0.95});
  for (const int ranks : kRingRanks) {
    all.push_back({ring_goal(ranks),
                   fmt::format("time of one shot over a ring's on one device, zigzag causal, "
                               "ranks: {}",
                               ranks),
                   kTimes, 0.93, 0.97});
  }
  for (const HopFrom from : {HopFrom::device, HopFrom::host}) {
    all.push_back({hop_goal(from),
                   fmt::format("time of the forward kernel with copies from {} under it over its "
                               "time alone",
                               from == HopFrom::device ? "device memory" : "pinned host memory"),
                   kTimes, 1.05, 1.02, Sense::at_most});
  }
  for (const std::int64_t chunk : kHopChunks) {
    all.push_back({step_goal(chunk),
                   "relative error of the modelled time of a step, chunk: " + tokens_text(chunk),
                   "share", 0.10, 0.05, Sense::at_most});
  }
  return all;
}

}  // namespace

std::int64_t ring_chunk(bool quick) { return quick ? 4096 : 8192; }

std::string ring_goal(int ranks) { return fmt::format("G7.p{}", ranks); }
std::string hop_goal(HopFrom from) { return from == HopFrom::device ? "G8.device" : "G8.host"; }
std::string step_goal(std::int64_t chunk) { return "G9.c" + tokens_text(chunk); }

const std::vector<GpuMatch>& gpu_matches() {
  static const std::vector<GpuMatch> all = make_matches();
  return all;
}

const std::vector<Goal>& gpu_goals() {
  static const std::vector<Goal> all = make_goals();
  return all;
}

}  // namespace ringlab::bench
