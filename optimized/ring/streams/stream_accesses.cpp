#include "optimized/ring/streams/stream_accesses.h"

namespace ringlab::ring {
namespace {

Access read_of(Payload payload, SlotPlace place) {
  return {.payload = payload, .place = place, .writes = false};
}
Access write_of(Payload payload, SlotPlace place) {
  return {.payload = payload, .place = place, .writes = true};
}

}  // namespace

std::vector<Access> accesses_of(const StreamOperation& operation, Pass pass) {
  const SlotPlace chunk{operation.rank, operation.slot};
  const SlotPlace sum{operation.rank, operation.gradient};
  const SlotPlace addend{operation.rank, operation.addend};
  switch (operation.action) {
    case StreamAction::attend:
      // Forward, the state is no slot: it belongs to the compute stream
      // alone, whose order protects it.
      if (pass == Pass::forward) return {read_of(Payload::chunk, chunk)};
      // The sum is cleared and written, never read first, so it depends on
      // readers of its last content.
      return {read_of(Payload::chunk, chunk), write_of(Payload::gradients, sum)};
    case StreamAction::add_gradient:
      // Adding reads its target as well, but a writer of a slot comes after
      // all earlier users anyway.
      return {read_of(Payload::gradients, addend), write_of(Payload::gradients, sum)};
    case StreamAction::copy:
      return {read_of(operation.payload, operation.from),
              write_of(operation.payload, operation.to)};
    case StreamAction::record:
    case StreamAction::wait:
    case StreamAction::delay:
      break;
  }
  return {};
}

}  // namespace ringlab::ring
