// Messages under way at the same time, and how they share the ways of a machine.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/model/machine.h"
#include "reference/model/shares.h"

namespace ringlab::model {

/// Messages on the ways of a machine. Those of one sender and one receiver queue, first in, first
/// out, as NCCL's and MPI's do; those of different pairs share the ways max-min fairly. Who calls
/// it goes through time: all starts and ends of a moment come before share() of that moment, and
/// none lies before it.
class NetworkModel {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit NetworkModel(const Machine& machine) : machine_(machine) {}

  /// `message` is a number of the caller's.
  void start(int message, int from, int to, std::int64_t bytes, double now);
  /// True when messages have started or ended since the ways were last shared out.
  bool has_changed() const { return !changed_.empty(); }
  void share(double now);
  /// The time at which the next message ends; kNever when nothing is under way.
  double next_end();
  /// The messages that end by `now`.
  std::vector<int> take_ended(double now);

 private:
  /// The name of a way: between nodes or not, its kind, its ends.
  enum class WayKind { out, in, link };
  using Name = std::tuple<bool, WayKind, int, int>;
  struct Waiting {
    int message = 0;
    double bytes = 0;
  };
  /// A sender and a receiver; the first message of their queue is under way.
  struct Pair {
    std::deque<Waiting> queue = {};  ///< bytes that are left, of the first at `since`
    double speed = 0;
    double since = 0;
    int times_shared = 0;  ///< ends that were foreseen before are void
  };
  struct End {
    double time = 0;
    int pair = 0;
    int times_shared = 0;
    bool operator>(const End& other) const {
      return std::tie(time, pair) > std::tie(other.time, other.pair);
    }
  };

  int pair_of(int from, int to);
  std::vector<int> ways_between(int from, int to);
  int way(const Name& name, double bytes_per_s);
  void set_speed(int pair, double speed, double now);
  void foresee_end(int pair);
  bool is_void(const End& end) const;
  void drop_void_ends();

  const Machine& machine_;
  std::map<std::pair<int, int>, int> pair_numbers_;
  std::map<Name, int> way_numbers_;
  std::vector<Pair> pairs_;
  Shares shares_;             // of pairs with a message under way
  std::vector<int> changed_;  // pairs that came to have one, or have none any more
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace ringlab::model
