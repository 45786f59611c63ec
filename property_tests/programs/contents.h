// What slots hold, followed along one order in which everything may happen.
//
// Where nothing races, every order gives the same contents.
#pragma once

#include <map>
#include <utility>

#include "property_tests/programs/order.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::programs {

/// Which contributions, (rank, owner), a sum of dK and dV is made of, and how often each.
using Sum = std::map<std::pair<int, int>, int>;

/// What a slot holds.
struct Held {
  int owner = kNobody;  ///< of the chunk that it is, or is about
  Sum sum = {};
  Report unused = {};  ///< of what made this sum, until it is sent or added somewhere
};

/// Reports reads of what is not there, and sums that are lost or used twice.
class Contents {
 public:
  /// Each rank has its own chunk, and an own sum of nothing.
  Contents(int ranks, Pass pass);

  /// A sum begins anew with a contribution, the own one with its first.
  void compute(int rank, const Operation& operation, const Report& report);
  void add(int rank, const Operation& operation, const Report& report);
  /// What leaves with a message that is said to be about the chunk of `owner`.
  Held send(Payload payload, ring::SlotPlace from, int owner, const Report& report);
  void receive(Payload payload, ring::SlotPlace to, Held held, const Report& report);
  /// When all has happened: no sum is left over, and each own sum has the contribution of every
  /// compute of `schedule` exactly once.
  void check_end(const Schedule& schedule, Findings& findings);

 private:
  Held& at(Payload payload, ring::SlotPlace place) { return held_[{payload, place}]; }
  void must_hold(Payload payload, ring::SlotPlace place, int owner, const Report& report);
  /// Sending and adding use a sum up; the own one stays.
  void use_up(ring::SlotPlace place, const Report& report);
  void check_own_sum(const Schedule& schedule, int owner, Findings& findings);

  const Pass pass_;
  std::map<std::pair<Payload, ring::SlotPlace>, Held> held_;
};

/// "slot 1", "the own sum".
std::string slot_text(Payload payload, int slot);

}  // namespace ringlab::programs
