#include "optimized/ring/streams/stream_accesses.h"

namespace ringlab::ring {

std::vector<Access> accesses_of(const StreamOperation& operation, Pass pass) {
  const int rank = operation.rank;
  switch (operation.action) {
    case StreamAction::attend:
      if (pass == Pass::forward) return {{Payload::chunk, {rank, operation.slot}, false}};
      return {{Payload::chunk, {rank, operation.slot}, false},
              {Payload::gradients, {rank, operation.gradient}, true}};
    case StreamAction::add_gradient:
      return {{Payload::gradients, {rank, operation.addend}, false},
              {Payload::gradients, {rank, operation.gradient}, true}};
    case StreamAction::copy:
      return {{operation.payload, operation.from, false}, {operation.payload, operation.to, true}};
    case StreamAction::record:
    case StreamAction::wait:
    case StreamAction::delay:
      break;
  }
  return {};
}

}  // namespace ringlab::ring
