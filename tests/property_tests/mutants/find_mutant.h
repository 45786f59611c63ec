// A planted mistake by its name.
#pragma once

#include <stdexcept>
#include <string>

#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {

inline const Mutant& find_mutant(const std::string& id) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.info.id == id) return mutant;
  }
  throw std::runtime_error("no mutant " + id);
}

}  // namespace ringlab::mutants
