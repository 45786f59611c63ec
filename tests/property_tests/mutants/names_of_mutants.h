// The right names of planted mistakes.
#pragma once

#include <map>
#include <string>

namespace ringlab::mutants {

/// Mutant → the suspect that it is.
const std::map<std::string, std::string>& names_of_mutants();

}  // namespace ringlab::mutants
