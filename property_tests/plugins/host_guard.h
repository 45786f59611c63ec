// What the process of a plugin does to be harmless: limits, floating-point mode, last words.
#pragma once

#include <cstdint>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

struct HostLimits {
  std::int64_t memory_bytes = 0;  ///< 0: none
  std::int64_t file_bytes = std::int64_t{1} << 30;
};
/// Address space, core files, file sizes, processes, no new privileges; and an end with the socket:
/// where ringlab is gone, nobody waits.
void restrict_process(const HostLimits& limits);

/// So much more processor time than so far, then SIGXCPU.
void allow_processor_seconds(double seconds);

/// Signals that end a process are told on the socket first. `sequence` is that of the call at work.
void report_signals(std::uint64_t sequence);

/// Rounds to nearest, keeps subnormals, traps nothing.
void set_default_float_mode();
/// ModeChange bits: how it differs from that now.
std::uint32_t float_mode_changes();

/// Ends what this process started and did not wait for; how many that were.
int end_children();

}  // namespace ringlab::plugins
