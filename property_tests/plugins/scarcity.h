// What a machine has no more of, found out by asking for it: whoever fails then may be right.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::plugins {

/// Whether this process gets less than 1 GiB of addresses more. Safe in a signal handler.
bool addresses_are_scarce();

/// What is missing here, as words: "threads", "descriptors"; empty where both are there for a few
/// dozen more.
std::string scarce_here();

}  // namespace ringlab::plugins
