// Which slots an operation on a stream reads and writes.
#pragma once

#include <vector>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

/// One use of a slot by an operation.
struct Access {
  Payload payload = Payload::chunk;
  SlotPlace place;
  bool writes = false;
};
/// What an operation does to slots. Own chunks are only read.
std::vector<Access> accesses_of(const StreamOperation& operation, Pass pass);

}  // namespace ringlab::ring
