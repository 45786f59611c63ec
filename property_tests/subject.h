// Anything that computes attention and can be checked: a stage, the engine, a mutant, a plugin.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::verify {

struct Capabilities {
  std::vector<DType> dtypes;
  bool many_ranks = true;         ///< honours RunOptions::ranks, layout, transport
  bool counts_traffic = true;     ///< RunResult::ranks is filled in
  bool masked_may_be_nan = true;  ///< never lets a masked key or value reach the result
  bool backward = false;          ///< gives gradients when AttentionInput::dout is set
  bool schedules = false;         ///< honours RunOptions::schedule, node_ranks and slots
  bool ring_traffic = false;      ///< K/V travel neighbour to neighbour: closed forms apply
  bool prefetches = false;  ///< honours RunOptions::slots, beside the own chunk, on the plain ring
  bool skips_empty_blocks = false;
  bool threads = false;       ///< honours RunOptions::threads
  bool modifiers = false;     ///< honours Problem::modifiers
  bool traces = false;        ///< keeps RankStats::events when RunOptions::trace is set
  bool cuda = false;          ///< honours DeviceKind::cuda, in builds that have it
  bool bit_masks = true;      ///< takes masks that are matrices of bits
  bool deterministic = true;  ///< same bits from run to run
  /// Keys appended at the end leave every earlier partial sum as it was. false for kernels that
  /// start at the last key, as some do for causal attention.
  bool sums_keys_in_order = true;
};

struct Subject {
  std::string name;   ///< "ring", "broadcast", "mutant:ring_one_hop_short"
  std::string title;  ///< one line for tables
  Capabilities can;
  std::function<RunResult(const AttentionInput&, const RunOptions&)> run;
  std::function<NumericsProfile(const Problem&, const RunOptions&)> profile;
  int tile_queries = 32;  ///< what it is fastest with
  int tile_keys = 32;
  /// Where it can less on devices than on the CPU.
  std::optional<Capabilities> can_on_devices = {};

  const Capabilities& can_on(DeviceKind device) const {
    return device == DeviceKind::cuda && can_on_devices ? *can_on_devices : can;
  }
};

/// The same subject, with every run and promise on `device`: the laws make options of their own.
Subject on_device(Subject subject, DeviceKind device);

/// Every stage as a subject, in order, and later the optimized variants.
std::vector<Subject> all_subjects();
/// By name or stage number ("ring", "05", "05_ring"); usage error naming the known ones otherwise.
Subject find_subject(const std::string& name);

}  // namespace ringlab::verify
