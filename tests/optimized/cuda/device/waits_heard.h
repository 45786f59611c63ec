// What kernels that never end say, when they are compiled for tests.
#pragma once

#include <string>

namespace ringlab::cuda {

/// Makes the memory for it, once. Empty, or why a kernel's last words cannot be had here.
std::string hear_of_lost_waits();

/// Which wait was given up since the last time; empty for none.
std::string lost_wait();

}  // namespace ringlab::cuda
