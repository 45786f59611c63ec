// Streams and events without devices: an order of work that they allow, drawn from a seed.
#pragma once

#include <cstdint>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

/// What operations on slots do. A copy ends some time after it began.
class StreamMachine {
 public:
  virtual ~StreamMachine() = default;
  virtual void begin_copy(const StreamOperation& copy) = 0;
  virtual void end_copy(const StreamOperation& copy) = 0;
  virtual void attend(const StreamOperation& operation) = 0;
  virtual void add_gradient(const StreamOperation& operation) = 0;
};

/// Executes a program in some order that keeps streams in order and waits behind their records, as
/// devices do: a wait holds back until the last record of its event that was issued before it, and
/// is nothing if there is none. Some streams are much slower than others; a delay makes its stream
/// miss turns. All operations are executed, whatever the program. Deterministic in the seed.
void execute_in_random_order(const StreamProgram& program, std::uint64_t seed,
                             StreamMachine& machine);

}  // namespace ringlab::ring
