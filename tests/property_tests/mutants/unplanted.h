// Wrong edits of unplanted.toml, as mutants.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {

struct NamedEdit {
  Mutant mutant;
  std::vector<std::string> names;  ///< that are right; none: it has no name
};
inline void PrintTo(const NamedEdit& edit, std::ostream* out) { *out << edit.mutant.info.id; }

std::vector<NamedEdit> unplanted_edits();

}  // namespace ringlab::mutants
