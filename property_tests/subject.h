// Anything that computes attention and can be checked: a stage, the engine, a mutant, a plugin.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/abilities.h"
#include "reference/core/numerics.h"
#include "reference/core/options/option_table.h"
#include "reference/core/run.h"

namespace ringlab::ring {
enum class AttentionOf;
}

namespace ringlab::verify {

/// The place of a run's ranks: a kind of device, and one process or a process for each.
struct Place {
  DeviceKind device = DeviceKind::cpu;
  TransportKind transport = TransportKind::threads;

  /// True when the ranks are processes: mpi carries between CPUs, nccl between devices.
  bool is_job() const {
    return transport == TransportKind::mpi || transport == TransportKind::nccl;
  }
};

/// Names and values of the kernels, copies and the like that a run uses.
using RunFacts = std::vector<std::pair<std::string, std::string>>;

/// Runs of a subject on devices, where they differ from those on the CPU.
struct DeviceRuns {
  Capabilities can;
  /// Throws an environment error where a need besides a device is missing.
  std::function<void()> require = [] {};
  /// Usage error for a run that it does not take on any machine.
  std::function<void(const Problem&, const RunOptions&, Pass last_pass)> check =
      [](const Problem&, const RunOptions&, Pass) {};
  /// Names kernels, copies and the like that a run uses, which have to be there.
  std::function<RunFacts(const Problem&, const RunOptions&)> describe =
      [](const Problem&, const RunOptions&) { return RunFacts(); };
};

struct Subject {
  std::string name;   ///< "ring", "broadcast", "mutant:ring_one_hop_short"
  std::string title;  ///< one line for tables
  Capabilities can;
  std::function<RunResult(const AttentionInput&, const RunOptions&)> run;
  std::function<NumericsProfile(const Problem&, const RunOptions&)> profile;
  int tile_queries = 32;  ///< tiles that it is fastest with
  int tile_keys = 32;
  std::optional<DeviceRuns> on_devices = {};
  /// Carriers between ranks that are processes, each on rows of its own: for the ring engine only.
  std::vector<TransportKind> carriers = {};
  ring::AttentionOf attention = {};  ///< whose block kernels these ranks call
  bool makes_rows = false;           ///< runs where each rank makes its rows and nobody has all
  /// Stated traffic and memory of `rank` on CPUs; empty where the subject states none.
  std::function<StatedCosts(const Problem&, const RunOptions&, int rank)> costs = {};
  /// The name in replay tokens where that is another: "libmine.so@1f3c…", by its content.
  std::string id = {};
  /// The stage that it was written as, "ring", where its name does not say that.
  std::string stage = {};
  /// The end of what its last run wrote to standard output and error, for a subject in a process of
  /// its own.
  std::function<std::string()> printed = [] { return std::string(); };

  const std::string& stage_or_name() const { return stage.empty() ? name : stage; }
  const Capabilities& can_on(DeviceKind device) const {
    return device == DeviceKind::cuda && on_devices ? on_devices->can : can;
  }
  Capabilities can_at(const Place& place) const;
  bool runs_on(TransportKind carrier) const;
};

/// The expectation, for an error message, where the option has no effect on this subject: "a
/// subject that has gradients"; empty where it has one.
std::string why_without_effect(const Subject& subject, const RunOption& option, const Place& place);

/// The subject with every run and promise on `device`: the laws make options of their own.
Subject on_device(Subject subject, DeviceKind device);

/// The subject with RunOptions::deterministic off in every run: the bits of its gradients are not
/// promised, those of o and lse are.
Subject with_gradients_in_any_order(Subject subject);

}  // namespace ringlab::verify
