// The entries of a folder.
#pragma once

#include <string>
#include <vector>

namespace ringlab {

/// The names in a folder, sorted; none where it cannot be read. std::system_error where the
/// machine has no descriptor or memory for it.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace ringlab
