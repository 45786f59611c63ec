// The contents of slots, followed along one order in which everything may happen.
//
// Every order gives the same contents where nothing races.
#pragma once

#include <map>
#include <utility>

#include "property_tests/programs/order.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::programs {

/// The contributions, (rank, owner), that a sum of dK and dV is made of, and how often each.
using Sum = std::map<std::pair<int, int>, int>;

/// The contents of a slot.
struct Held {
  int owner = kNobody;  ///< owner of the chunk, or of the sum's chunk
  Sum sum = {};
  Report unused = {};  ///< reports on the sum's origin, until it is sent or added
};

/// Reports reads of contents that are not there, and sums that are lost or used twice.
class Contents {
 public:
  /// Each rank has its own chunk, and an own sum of nothing.
  Contents(int ranks, Pass pass);

  /// Computes on a chunk. Its sum begins anew with the contribution, the own one with its first.
  void compute(int rank, const Operation& operation, const Report& report);
  void add(int rank, const Operation& operation, const Report& report);
  /// The contents that leave with a message which is said to be about the chunk of `owner`.
  Held send(Payload payload, ring::SlotPlace from, int owner, const Report& report);
  void receive(Payload payload, ring::SlotPlace to, Held held, const Report& report);
  /// Checks, when all has happened, that no sum is left over, and that each own sum has the
  /// contribution of every compute of `schedule` exactly once.
  void check_end(const Schedule& schedule, Findings& findings);

 private:
  Held& at(Payload payload, ring::SlotPlace place) { return held_[{payload, place}]; }
  void must_hold(Payload payload, ring::SlotPlace place, int owner, const Report& report);
  /// Notes that a sum is used up by sending or adding it; the own one stays.
  void use_up(ring::SlotPlace place, const Report& report);
  void check_own_sum(const Schedule& schedule, int owner, Findings& findings);

  const Pass pass_;
  std::map<std::pair<Payload, ring::SlotPlace>, Held> held_;
};

/// The name of a slot: "slot 1", "the own sum".
std::string slot_text(Payload payload, int slot);

}  // namespace ringlab::programs
