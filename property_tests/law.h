// A law: a statement about attention that every correct subject satisfies on every case.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/endings.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

enum class Outcome { held, broken, discarded };

/// An element of a tensor of outputs or gradients.
struct Element {
  std::string tensor;  ///< "o", "lse", "dq", "dk", "dv", also in a sentence
  std::int64_t batch = 0, head = 0, token = 0, channel = 0;
};

/// Numbers that were compared within bounds (reference/core/report.h).
struct BoundCounts {
  std::int64_t measured = 0;
  std::int64_t telling = 0;    ///< where 0 would have been off by more than is allowed
  std::int64_t unbounded = 0;  ///< where the bound is as wide as the answer
  std::int64_t infinite = 0;   ///< where there is no bound
  void add(const BoundCounts& more);
  double unbounded_share() const;
  /// True when numbers were measured, and zeros would have done as well everywhere.
  bool are_open() const { return measured > 0 && telling == 0; }
};

/// The result of one law on one case.
struct LawResult {
  Outcome outcome = Outcome::held;
  double ratio = 0;     ///< worst error / bound where a bound was involved
  std::string message;  ///< broken: got, exact, allowed and where; discarded: why
  /// The element that was off most, where the law compared elements.
  std::optional<Element> worst = {};
  Ending ending = Ending::answered;
  int rank = -1;  ///< the rank that failed, and its step of the schedule, where the subject says so
  int step = -1;
  bool refused = false;  ///< discarded because the subject refused what it claims to take
  BoundCounts bounds = {};
};

struct Law {
  std::string id;         ///< "P14", "U", "equals_reference"
  std::string name;       ///< a sentence: shifting_all_scores_of_a_row_changes_only_lse
  std::string statement;  ///< one line for reports
  bool exact = false;     ///< bitwise, no tolerance: asked of subjects that promise bits
  /// An exact law that other subjects keep within their bounds (allowed_between_runs()).
  bool or_within_bounds = false;
  /// Turns a random case into one this law can use (sets a mask, equal lengths, …).
  std::function<Case(Case)> shape_case = {};
  std::vector<Ability> needs = {};
  /// Empty when the law applies to a subject that has what it needs, else the reason why not.
  std::function<std::string(const Subject&)> not_applicable = {};
  std::function<LawResult(const Subject&, const Case&)> check;
  /// True for a law that holds with score modifiers, too; else its cases have none (ALiBi moves
  /// with positions, sinks take weight, dropout breaks every symmetry).
  bool keeps_modifiers = false;
  std::string topic = {};  ///< topic of its group: "masks and shapes", "gradients", …
  /// shape_case for a case that is made simpler after it broke the law; empty: the same.
  std::function<Case(Case)> shape_simpler_case = {};
  /// The time of a case in cases of other laws: so many times fewer are tried, one at least.
  int cost = 1;
  /// The cases of a round, where they are planned and not drawn: of equal seeds and rounds the same.
  std::function<std::vector<Case>(const Capabilities&, std::uint64_t seed, std::uint64_t round)>
      planned_cases = {};

  /// The first reason why the law does not apply to this subject; empty where it does.
  std::string unmet(const Subject& subject) const;
};

/// The id of the law whose cases are planned by joint/plan.h.
inline constexpr const char* kAsUsedLaw = "as_used";

const std::vector<Law>& all_laws();
/// Further laws for foreign subjects (Ability::foreign), which are under all_laws(), too.
const std::vector<Law>& laws_about_others();
const Law& find_law(const std::string& id);  ///< usage error otherwise

}  // namespace ringlab::verify
