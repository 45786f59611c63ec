// A law: a statement about attention that every correct subject satisfies on every case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

enum class Outcome { held, broken, discarded };

/// What came of one law on one case.
struct LawResult {
  Outcome outcome = Outcome::held;
  double ratio = 0;     ///< worst error / bound where a bound was involved
  std::string message;  ///< broken: got, exact, allowed and where; discarded: why
};

struct Law {
  std::string id;         ///< "P14", "U", "equals_reference"
  std::string name;       ///< a sentence: shifting_all_scores_of_a_row_changes_only_lse
  std::string statement;  ///< one line for reports
  bool exact = false;     ///< bitwise, no tolerance
  /// Turns a random case into one this law can use (sets a mask, equal lengths, …).
  std::function<Case(Case)> shape_case = {};
  /// Empty when the law applies to this subject, else the reason why not.
  std::function<std::string(const Subject&)> not_applicable = {};
  std::function<LawResult(const Subject&, const Case&)> check;
  /// Holds with score modifiers, too; else its cases have none (ALiBi moves with positions, sinks
  /// take weight, dropout breaks every symmetry).
  bool keeps_modifiers = false;
};

const std::vector<Law>& all_laws();
/// Laws for subjects of others (Capabilities::foreign), who are under all_laws(), too.
const std::vector<Law>& laws_about_others();
const Law& find_law(const std::string& id);  ///< usage error otherwise

}  // namespace ringlab::verify
