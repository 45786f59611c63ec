// The measurements behind the goals, one function per family.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "optimized/bench/measure/goal.h"

namespace ringlab::bench {

struct Findings;

/// Settings for measuring a family, and callbacks for its progress.
struct Plan {
  int rounds = 11;
  bool quick = false;             ///< shorter sequences
  std::vector<Goal> goals = {};   ///< the wanted ones of the family
  std::string peer_folder = {};   ///< where the programs of peers are
  std::string torch_python = {};  ///< a Python that has PyTorch; empty: none is known
  std::function<void(double share)> progress = {};
  std::function<void(const Findings& so_far)> found = {};

  bool wants(const std::string& id) const;
  void report(double share) const {
    if (progress) progress(share);
  }
  /// Passes on the findings so far, which are kept in case the program is ended.
  void keep(const Findings& so_far) const {
    if (found) found(so_far);
  }
  /// Runs `work`, which adds to `findings`, and keeps them. An environment error from it skips the
  /// goal `id` alone.
  void find(const std::string& id, Findings& findings, const std::function<void()>& work) const;
  /// Rounds and progress of part `part` of `parts` of the family, all parts equally long.
  TimingOptions timing(int part = 0, int parts = 1) const;
  /// Calls `work` for each goal, which adds to the findings and may throw as of find().
  using GoalWork = std::function<void(const Goal&, const TimingOptions&, Findings&)>;
  Findings for_each(const GoalWork& work) const;
};

/// Outcomes by the ids of their goals, as far as a family knows them.
struct Findings {
  std::map<std::string, GoalOutcome> found = {};

  void reached(const std::string& id, const Spread& value) { found[id].value = value; }
  void skip(const std::string& id, const std::string& reason) { found[id].reason = reason; }
  void by(const std::string& id, const std::string& subject) { found[id].subject = subject; }
  void beside(const std::string& id, const std::string& name, const Spread& value) {
    found[id].beside.emplace_back(name, value);
  }
};

/// Environment error when this process may use fewer than `cores` cores.
void check_cores(int cores);

Findings measure_shares(const Plan& plan);         ///< C1, C2, C4, C6
Findings measure_against_sgemm(const Plan& plan);  ///< C3
Findings measure_reference(const Plan& plan);      ///< C5
Findings measure_ring(const Plan& plan);           ///< C7
Findings measure_against_torch(const Plan& plan);  ///< C8
Findings measure_scaling(const Plan& plan);        ///< C9
Findings measure_memory(const Plan& plan);         ///< C10
Findings measure_decoding(const Plan& plan);       ///< C11

/// Goals that are measured together.
struct GoalFamily {
  std::vector<std::string> ids;
  std::string title;
  double weight;  ///< roughly how long it takes, compared with the others
  std::function<Findings(const Plan& plan)> measure;
};
/// The families that measure cpu_goals().
const std::vector<GoalFamily>& cpu_families();

using MeasureProgress = std::function<void(double share, const std::string& family)>;
using MeasureKeep = std::function<void(const std::vector<GoalOutcome>& so_far)>;

/// Measures the goals of `plan`, family by family; one outcome for each, in that order. A goal
/// without a finding is skipped, with a reason. `keep` is given the outcomes so far after every
/// family, and within families of long goals after every goal.
std::vector<GoalOutcome> measure(const Plan& plan, const MeasureProgress& progress,
                                 const std::vector<GoalFamily>& families = cpu_families(),
                                 const MeasureKeep& keep = {});

}  // namespace ringlab::bench
