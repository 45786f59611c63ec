// Guards around one call of a plugin: processor time, floating-point mode, last words.
#pragma once

#include <cstdint>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// Notes an outside limit of addresses below `address_bytes`, before ringlab sets its own limits.
void note_limits_from_outside(std::int64_t address_bytes);

/// True when a limit from outside, not ours, leaves this process next to no memory. Safe in a
/// signal handler.
bool memory_is_scarce();

/// Allows `seconds` more processor time than was used so far; then comes SIGXCPU.
void allow_processor_seconds(double seconds);

/// Makes fatal signals report on the socket first. `sequence` is that of the call at work.
void report_signals(std::uint64_t sequence);

/// Sets the mode that rounds to nearest, keeps subnormals and traps nothing.
void set_default_float_mode();
/// ModeChange bits: the differences from that mode now.
std::uint32_t float_mode_changes();

}  // namespace ringlab::plugins
