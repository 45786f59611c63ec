// Slots that an operation on a stream reads and writes, and the operations that come before it.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

/// One use of a slot by an operation.
struct Access {
  Payload payload = Payload::chunk;
  SlotPlace place;
  bool writes = false;
};
/// Reads and writes of slots by an operation. Own chunks are only read.
std::vector<Access> accesses_of(const StreamOperation& operation, Pass pass);

/// The operations, by number, that wrote and read every slot last. The proof of programs does not
/// trust this class and has one of its own (property_tests/programs/order.h).
class SlotUses {
 public:
  /// Calls `comes_after(earlier)` for all operations that must end before `number` uses the slot.
  template <class ComesAfter>
  void use(const Access& access, std::size_t number, ComesAfter comes_after) {
    Use& use = uses_[{access.payload, access.place}];
    if (use.writer) comes_after(*use.writer);
    if (!access.writes) {
      use.readers.push_back(number);
      return;
    }
    for (const std::size_t reader : use.readers) {
      if (reader != number) comes_after(reader);
    }
    use = {.writer = number};
  }

 private:
  struct Use {
    std::optional<std::size_t> writer = {};
    std::vector<std::size_t> readers = {};
  };
  std::map<std::pair<Payload, SlotPlace>, Use> uses_;
};

}  // namespace ringlab::ring
