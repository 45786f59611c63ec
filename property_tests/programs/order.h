// The graph that all checks look at: operations that touch slots, and their order.
//
// Schedules, programs of streams, programs of messages and recorded traces order operations in ways
// of their own: posts and waits, streams and events, exchanges that meet, times. Here the order is
// of one form; the laws about slots (races here, contents in contents.h) are the same for all.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/ring/streams/stream_accesses.h"
#include "optimized/ring/streams/stream_clock.h"

namespace ringlab::programs {

using Findings = std::vector<std::string>;
/// Takes a fault of the operation that it was made for.
using Report = std::function<void(const std::string& what)>;
/// Takes a fault of the operation with this number.
using ReportAt = std::function<void(std::size_t number, const std::string& what)>;

/// Points of lanes (ranks), each after the one before it in its lane and after others.
class Order {
 public:
  explicit Order(std::size_t lanes) : last_(lanes) {}
  /// The number of a new point, the last of its lane.
  std::size_t add(std::size_t lane);
  /// The number of a new point that is in no lane.
  std::size_t add();
  void add_after(std::size_t later, std::size_t earlier);
  /// Makes sure that the point is never reached, as if it came after one that never will be.
  void block(std::size_t point) { ++missing_[point]; }
  /// All points that are ever reached, each after all points that it comes after. The set does not
  /// depend on the order: a point that can happen stays possible until it happens, so that one
  /// order decides about all delays.
  std::vector<std::size_t> reached() const {
    return reached([](const std::vector<std::size_t>& ready) { return ready.size() - 1; });
  }
  /// The reached points in a chosen order: `pick(ready)` is the index of the one that comes next.
  template <class Pick>
  std::vector<std::size_t> reached(Pick pick) const {
    std::vector<int> missing = missing_;
    std::vector<std::size_t> ready, reached;
    for (std::size_t point = 0; point < missing.size(); ++point) {
      if (missing[point] == 0) ready.push_back(point);
    }
    while (!ready.empty()) {
      std::swap(ready[pick(std::as_const(ready))], ready.back());
      const std::size_t point = ready.back();
      ready.pop_back();
      reached.push_back(point);
      for (const std::size_t later : next_[point]) {
        if (--missing[later] == 0) ready.push_back(later);
      }
    }
    return reached;
  }

 private:
  std::vector<std::optional<std::size_t>> last_;  // by lane
  std::vector<std::vector<std::size_t>> next_;    // by point: the points that come after it
  std::vector<int> missing_;                      // by point: how many points it comes after
};

/// The events of an order: a wait comes after the last record of its event before it, if any.
class Events {
 public:
  Events(Order& order, int events) : order_(order), recorded_(static_cast<std::size_t>(events)) {}
  void record(int event, std::size_t point) { recorded_[static_cast<std::size_t>(event)] = point; }
  void wait(int event, std::size_t point) {
    const auto& record = recorded_[static_cast<std::size_t>(event)];
    if (record) order_.add_after(point, *record);
  }

 private:
  Order& order_;
  std::vector<std::optional<std::size_t>> recorded_;  // points, by event
};

/// Operations that touched each slot since it was last written, by number.
class SlotUses {
 public:
  /// Calls `conflict(earlier)` for all that `number` must come after, and notes its access.
  template <class Conflict>
  void use(const ring::Access& access, std::size_t number, Conflict conflict) {
    Uses& uses = uses_[{access.payload, access.place}];
    if (uses.writer && *uses.writer != number) conflict(*uses.writer);
    if (!access.writes) {
      uses.readers.push_back(number);
      return;
    }
    for (const std::size_t reader : uses.readers) {
      if (reader != number) conflict(reader);
    }
    uses = {.writer = number, .readers = {}};
  }

 private:
  struct Uses {
    std::optional<std::size_t> writer = {};
    std::vector<std::size_t> readers = {};
  };
  std::map<std::pair<Payload, ring::SlotPlace>, Uses> uses_;
};

using Accesses = std::vector<ring::Access>;

/// Two operations that touch the same slot, one of them writing it, and that nothing orders.
struct Race {
  std::size_t earlier = 0, later = 0;
  ring::Access access = {};  ///< of the later one
};
/// Races among `accesses`, which stand in the order in which they are meant to happen.
/// `is_ordered(earlier, later)`: true when the one has ended when the other begins.
template <class IsOrdered>
std::vector<Race> races_among(const std::vector<Accesses>& accesses, IsOrdered is_ordered) {
  std::vector<Race> races;
  SlotUses uses;
  for (std::size_t later = 0; later < accesses.size(); ++later) {
    for (const ring::Access& access : accesses[later]) {
      uses.use(access, later, [&](std::size_t earlier) {
        if (!is_ordered(earlier, later)) races.push_back({earlier, later, access});
      });
    }
  }
  return races;
}

/// An operation on a stream, and the event that it records or waits for.
struct StreamStep {
  int stream = 0;
  std::optional<int> records = {}, waits_for = {};
};
/// Clocks of steps, in the order of issue: the steps that have ended when a step ends (on a wait:
/// when its stream goes on). Reports events that are recorded twice, and waits for events that are
/// not yet recorded, which do nothing.
std::vector<ring::StreamClock> clocks_of(const std::vector<StreamStep>& steps, int streams,
                                         int events, const ReportAt& report);

}  // namespace ringlab::programs
