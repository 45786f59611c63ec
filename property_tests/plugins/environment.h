// The variables of this process's environment that foreign code may read.
#pragma once

#include <string>
#include <vector>

namespace ringlab::plugins {

/// Variables for paths, languages, threads, numerical libraries and accelerators, and those that
/// begin with RINGLAB_; keys, tokens and the like are left out. Ends with a null pointer, as
/// execve() wants it; the texts stay where they are.
std::vector<char*> environment_for_others();

/// Removes and overwrites all other variables, in a copy of a process, and returns their names.
std::vector<std::string> clear_environment();

}  // namespace ringlab::plugins
