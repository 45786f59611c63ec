// How strong the laws were found to be, as known when this program was built.
#pragma once

#include <string>

namespace ringlab::cli {

/// The text of docs/mutants.json, which `kill_matrix --summary` writes; empty where there was none.
std::string strength_summary();
/// The SHA-256 of that file.
std::string strength_digest();

}  // namespace ringlab::cli
