// The file of this machine with its measured speeds.
#pragma once

#include <string>

#include "cli/machine/machine.h"

namespace ringlab::cli {

/// The text of a file as `simulate --machine` takes it: a rank is one processor of this machine,
/// its attention the engine's on one thread, forward and backward, in three types, two widths, two
/// masks and three lengths; links are messages between threads, with the share of computing that
/// they take. Takes about twenty seconds; nothing else should run meanwhile.
std::string measured_machine(const ThisMachine& machine, const std::string& name);

}  // namespace ringlab::cli
