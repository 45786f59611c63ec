// The files that a library of others is made of.
#pragma once

#include <string>
#include <vector>

namespace ringlab::plugins {

/// The library at `path`, the libraries that the dynamic linker finds for it, and those in its
/// folder, which it may load itself. Nothing in them is executed. Called in a process with one
/// thread, before confine().
std::vector<std::string> libraries_of(const std::string& path);

}  // namespace ringlab::plugins
