// A machine's file, of what this machine is measured to do.
#pragma once

#include <string>

#include "cli/machine/machine.h"

namespace ringlab::cli {

/// The text of a file as `simulate --machine` takes it: a rank is one processor of this machine, its
/// attention that of the engine with one thread, forward and backward, in three types, two widths,
/// two masks and three lengths; links are messages between threads, with what they take from computing. Takes about twenty seconds; nothing
/// else should run meanwhile.
std::string measured_machine(const ThisMachine& machine, const std::string& name);

}  // namespace ringlab::cli
