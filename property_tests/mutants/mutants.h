// Mutants: subjects with one planted mistake each, drawn from real bugs. They measure the laws.
#pragma once

#include <string>
#include <vector>

#include "property_tests/subject.h"

namespace ringlab::mutants {

struct MutantInfo {
  std::string id;        ///< "ring_one_hop_short"
  std::string stage;     ///< the stage it was made from, "ring"
  std::string breaks;    ///< one line: what comes out wrong
  std::string question;  ///< leads a learner to the mistake
  std::string ancestor;  ///< the public bug it is drawn from, or "classic"
};

struct Mutant {
  MutantInfo info;
  /// Judged by the numerics that the correct stage promises.
  verify::Subject subject;
};

/// All mutants, stage by stage: those generated from the stages' text, then the decorated ones.
const std::vector<Mutant>& all_mutants();

}  // namespace ringlab::mutants
