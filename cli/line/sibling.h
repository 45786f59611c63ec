// Programs that are built and installed beside this one.
#pragma once

#include <string>
#include <vector>

namespace ringlab::cli {

/// Becomes the program `name` beside this one, with these words. Returns only by an environment
/// error: when there is no such program, or it cannot be started.
[[noreturn]] void become_sibling(const std::string& name, const std::vector<std::string>& words);

}  // namespace ringlab::cli
