// Streams, events and graphs of devices that are plain memory.
//
// Work is done when it is put on a stream. Where a thread defers it, it is done when a device is
// waited for or a stream's end is asked for, and no sooner: in any order that streams and events
// leave open, or by a clock. Where the stream is captured it is done when the graph is launched and
// its end asked for, and no sooner: piece by piece, in any order that streams and events leave
// open. What CUDA would refuse, and, but by a clock, what it would let pass though it is a mistake,
// is a std::logic_error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "optimized/cuda/device.h"

namespace ringlab::ring {

/// Now, or as part of the graph. `duration_ns` is what it takes by a clock.
void put_on(cuda::Stream stream, std::function<void()> work, std::int64_t duration_ns = 2000);

/// From now on this thread's work waits until it waits for a device or asks for a stream's end; what
/// is read or freed before is a std::logic_error or lost. The same seed gives the same order.
void defer_work(std::uint64_t seed);
/// The same, but in the order in which a device would come to it: a piece is issued 5 µs after the
/// one before, begins when all that it comes after has ended, and has its effect at its end; streams
/// run side by side. A wait for an event that was not recorded is none.
void defer_work_by_a_clock();
/// Work is done at once again; what was deferred is dropped.
void do_work_at_once() noexcept;

/// How a program that orders streams by events is made wrong: asked at every call with what the
/// caller says it is about. Nothing is wrong where they are empty.
struct EventMistakes {
  std::function<bool(const std::string& where)> leaves_out_wait = {};
  /// The stream on which an event is recorded in place of the one it should be.
  std::function<cuda::Stream(const std::string& where, cuda::Stream right)> records_on = {};
};
/// Of this thread.
EventMistakes& event_mistakes();

/// Work that goes on after its start until it is over, if the stream is captured; false: it is not,
/// and nothing happened.
bool capture_on(const CUstream_st* stream, std::function<void()> start,
                std::function<bool()> is_over);

/// As far as they can, those that nobody holds any more and that run nevertheless.
void run_dropped_graphs();

// For fake_devices.cpp:

/// Whether nothing of a graph that was launched there is left; does what can be done.
bool graphs_have_ended(const CUstream_st* stream);
/// Those that this thread launched, to their ends.
void end_graphs_of_thread();
/// Those that run and that this thread launched go no further: what they use is gone.
int stop_graphs_of_thread() noexcept;
/// std::logic_error while this thread captures, or while a graph that it launched runs.
void must_not_capture(const char* what);
void must_not_run(const char* what);

}  // namespace ringlab::ring
