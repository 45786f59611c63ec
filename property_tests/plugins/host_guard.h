// Guards that make the process of a plugin harmless: limits, floating-point mode, last words.
#pragma once

#include <cstdint>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

struct HostLimits {
  std::int64_t memory_bytes = 0;  ///< 0: none
  std::int64_t file_bytes = std::int64_t{1} << 30;
};
/// Limits address space, core files, file sizes and processes, allows no new privileges, and ends
/// with the socket: where ringlab is gone, nobody waits.
void restrict_process(const HostLimits& limits);

/// Allows so much more processor time than was used so far; then comes SIGXCPU.
void allow_processor_seconds(double seconds);

/// Signals that end a process are told on the socket first. `sequence` is that of the call at work.
void report_signals(std::uint64_t sequence);

/// Rounds to nearest, keeps subnormals, traps nothing.
void set_default_float_mode();
/// ModeChange bits: the differences from that mode now.
std::uint32_t float_mode_changes();

/// Ends the processes that this one started and did not wait for; returns how many there were.
int end_children();

}  // namespace ringlab::plugins
