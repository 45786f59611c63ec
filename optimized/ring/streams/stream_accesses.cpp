#include "optimized/ring/streams/stream_accesses.h"

namespace ringlab::ring {

std::vector<Access> accesses_of(const StreamOperation& operation, Pass pass) {
  const int rank = operation.rank;
  switch (operation.action) {
    case StreamAction::attend:
      if (pass == Pass::forward) return {{Held::chunk, {rank, operation.slot}, false}};
      return {{Held::chunk, {rank, operation.slot}, false},
              {Held::sum, {rank, operation.gradient}, true}};
    case StreamAction::add_gradient:
      return {{Held::sum, {rank, operation.addend}, false},
              {Held::sum, {rank, operation.gradient}, true}};
    case StreamAction::copy:
      return {{operation.held, operation.from, false}, {operation.held, operation.to, true}};
    case StreamAction::record:
    case StreamAction::wait:
    case StreamAction::delay:
      break;
  }
  return {};
}

}  // namespace ringlab::ring
