// Streams, events and graphs of devices that are plain memory.
//
// Work is done when it is put on a stream. Where the stream is captured it is done when the graph
// is launched and its end asked for, and no sooner: piece by piece, in any order that streams and
// events leave open. What CUDA would refuse, and what it would let pass though it is a mistake, is
// a std::logic_error.
#pragma once

#include <functional>

#include "optimized/cuda/stream.h"

namespace ringlab::ring {

/// Now, or as part of the graph.
void put_on(cuda::Stream stream, std::function<void()> work);

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
