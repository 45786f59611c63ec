// Guards around one call of a plugin: processor time, floating-point mode, last words.
#pragma once

#include <cstdint>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// To be called before ringlab sets its own limits, with the addresses that it leaves this process.
void note_limits_from_outside(std::int64_t address_bytes);

/// Whether a limit from outside, not ours, leaves this process next to no memory. Safe in a signal
/// handler.
bool memory_is_scarce();

/// Allows so much more processor time than was used so far; then comes SIGXCPU.
void allow_processor_seconds(double seconds);

/// Signals that end a process are told on the socket first. `sequence` is that of the call at work.
void report_signals(std::uint64_t sequence);

/// Rounds to nearest, keeps subnormals, traps nothing.
void set_default_float_mode();
/// ModeChange bits: the differences from that mode now.
std::uint32_t float_mode_changes();

}  // namespace ringlab::plugins
