// Devices that a build has code for.
#pragma once

#include <string>

namespace ringlab::cli {

/// True if one of BuildInfo::cuda_architectures ("80-real 90a-real 100-virtual", as CMake's) runs
/// on a device of this compute capability: machine code on its own major version from its minor
/// version on, or on that device alone where it ends in "a"; PTX, which the driver compiles, on all
/// newer ones. True for words that are no numbers: "native", "all".
bool has_code_for(const std::string& architectures, int major, int minor);

}  // namespace ringlab::cli
