// Texts of stream operations, and stream programs with delays.
#include <random>
#include <string>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {
namespace {

std::string slot_text(Payload payload, SlotPlace place) {
  std::string text = "rank " + std::to_string(place.rank);
  if (place.slot == kHome) return text + (payload == Payload::chunk ? " own chunk" : " own sum");
  return text + (payload == Payload::chunk ? " slot " : " gradient slot ") +
         std::to_string(place.slot);
}

std::string verb_text(const StreamOperation& o) {
  const std::string owner = std::to_string(o.owner);
  switch (o.action) {
    case StreamAction::attend:
      return "attend to chunk " + owner + " in " + slot_text(Payload::chunk, {o.rank, o.slot});
    case StreamAction::copy:
      return "copy of " + std::string(o.payload == Payload::chunk ? "chunk " : "the sum of ") +
             owner + " from " + slot_text(o.payload, o.from) + " to " + slot_text(o.payload, o.to);
    case StreamAction::add_gradient:
      return "add " + slot_text(Payload::gradients, {o.rank, o.addend}) + " to " +
             slot_text(Payload::gradients, {o.rank, o.gradient}) + " for chunk " + owner;
    case StreamAction::record:
      return "record event " + std::to_string(o.event);
    case StreamAction::wait:
      return "wait for event " + std::to_string(o.event);
    case StreamAction::delay:
      return "delay";
  }
  return "";
}

}  // namespace

std::string place(const StreamOperation& operation) {
  // A copy concerns the receiving rank, on whichever stream it is: its step is the receiver's.
  const int concerned = operation.action == StreamAction::copy ? operation.to.rank : operation.rank;
  return "rank " + std::to_string(concerned) + ", step " + std::to_string(operation.step) + ", " +
         verb_text(operation);
}

StreamProgram with_delays(const StreamProgram& program, std::uint64_t seed,
                          std::int64_t longest_ns) {
  std::mt19937_64 random(seed);
  StreamProgram delayed = program;
  delayed.operations.clear();
  const auto add_delay = [&](const StreamOperation& beside) {
    // Put on the stream of its neighbour in the list, so that it delays only that operation.
    StreamOperation delay{.action = StreamAction::delay,
                          .rank = beside.rank,
                          .stream = beside.stream,
                          .step = beside.step,
                          .owner = beside.owner};
    delay.delay_ns =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest_ns + 1));
    delayed.operations.push_back(delay);
  };
  for (const StreamOperation& operation : program.operations) {
    // No delay before a record: the delay behind its operation is there already, and waits for the
    // event include it.
    if (operation.action != StreamAction::record) add_delay(operation);
    delayed.operations.push_back(operation);
    if (touches_slots(operation)) add_delay(operation);
  }
  return delayed;
}

}  // namespace ringlab::ring
