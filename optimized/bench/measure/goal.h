// A goal: a figure with a bound and a target, and its measured value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/bench/measure/timing.h"
#include "reference/core/dtype.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::bench {

/// The direction in which a value is better.
enum class Sense { at_least, at_most };

/// The problem of a goal, as far as the goals of its family differ in it.
struct GoalCase {
  Pass pass = Pass::forward;
  DType dtype = DType::f32;
  std::string mask = "full";  ///< or "causal"
  std::int64_t head_dim = 128;
  std::int64_t heads = 1;
  std::int64_t tokens = 0;   ///< 0: as many as the plan says
  std::int64_t queries = 0;  ///< 0: one for each token
  int threads = 1;
  int ranks = 1;
  /// The implementation that it is compared with on a device: "cudnn", "flash"; or the memory that
  /// copies beside it come from: "device", "host".
  std::string beside = {};
};

struct Goal {
  std::string id;    ///< "C1.causal": the family, then the case
  std::string what;  ///< what is measured, in one line
  std::string unit;
  double bound = 0;   ///< what must be reached
  double target = 0;  ///< what is hoped for; not worse than `bound`
  Sense sense = Sense::at_least;
  GoalCase of = {};
};

/// "C1" of "C1.causal".
std::string family_of(const Goal& goal);

/// The goals of the processor and of a device, in the order of goals.toml, of which they are made.
const std::vector<Goal>& cpu_goals();
const std::vector<Goal>& gpu_goals();

/// The goals of `all` named by "C1,C3.onednn…": a whole family, or all whose id begins with the
/// word up to a dot; in the order of `all`, each once. Usage error for a word that names none.
std::vector<Goal> choose_goals(const std::string& words,
                               const std::vector<Goal>& all = cpu_goals());

enum class GoalVerdict { target, bound, missed, skipped };

/// The measured value of a goal. Without a value it was skipped, and `reason` says why.
struct GoalOutcome {
  Goal goal;
  std::optional<Spread> value = {};
  std::string reason = {};
  std::string subject = {};  ///< the kernel that was measured, where devices differ
  /// Further figures by name, such as times, or the value against each peer.
  std::vector<std::pair<std::string, Spread>> beside = {};

  /// Judges the median. A value that is not a finite number has missed.
  GoalVerdict verdict() const;
};

/// "target", "at least" (or "at most"), "missed", "skipped".
std::string verdict_text(const GoalOutcome& outcome);

/// Throughputs, times and peaks beside the goals: medians of GoalOutcome::beside, a column for each
/// name, in the order of their first use; cells are empty where an outcome has no such figure. A
/// column "by" comes first where outcomes have subjects.
struct FigureTable {
  struct Row {
    std::string id;
    std::vector<std::string> cells;
  };
  std::vector<std::string> names;
  std::vector<Row> rows;
};

/// A row for each outcome that has figures.
FigureTable figures_beside(const std::vector<GoalOutcome>& outcomes);

}  // namespace ringlab::bench
