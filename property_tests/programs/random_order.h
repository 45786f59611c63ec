// Streams, events and messages without devices: an order of work that they allow, from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/ring/messages/message_program.h"
#include "optimized/ring/streams/stream_program.h"
#include "property_tests/programs/order.h"

namespace ringlab::ring {

/// Executes operations on slots. A copy ends some time after it began.
class StreamMachine {
 public:
  virtual ~StreamMachine() = default;
  virtual void begin_copy(const StreamOperation& copy) = 0;
  virtual void end_copy(const StreamOperation& copy) = 0;
  virtual void attend(const StreamOperation& operation) = 0;
  virtual void add_gradient(const StreamOperation& operation) = 0;
};

/// The call of a StreamMachine at a point of an order.
enum class Told { nothing, begin_copy, end_copy, attend, add_gradient };
/// A call of a StreamMachine, and its operation, at a point of an order.
struct Happening {
  Told told = Told::nothing;
  const StreamOperation* operation = nullptr;
  std::size_t stream = 0;  ///< the stream whose pace it has
};

/// An order, and the happening at each of its points.
struct Happenings {
  programs::Order order;
  std::vector<Happening> at = {};

  std::size_t add(std::size_t lane, const Happening& happening) {
    at.push_back(happening);
    return order.add(lane);
  }
  std::size_t add(const Happening& happening) {
    at.push_back(happening);
    return order.add();
  }
};

/// Executes a program in some order that keeps streams in order and waits behind their records, as
/// devices do: a wait holds back until the last record of its event that was issued before it, and
/// is nothing if there is none. Some streams are much slower than others; a delay makes its stream
/// miss turns. All operations are executed, whatever the program. Deterministic in the seed.
void execute_in_random_order(const StreamProgram& program, std::uint64_t seed,
                             StreamMachine& machine);

/// Executes the programs of all ranks in such an order. An exchange begins as soon as its stream
/// comes to it; a message (a copy, for the machine) begins some time after both its exchanges have,
/// and an exchange ends with the last of its messages. A usage error when ranks wait for each other
/// for ever, or for messages that nobody sends.
void execute_in_random_order(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                             StreamMachine& machine);

}  // namespace ringlab::ring
