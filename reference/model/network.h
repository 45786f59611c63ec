// Messages under way at the same time, and how they share the ways of a machine.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "reference/model/machine.h"

namespace ringlab::model {

/// Ways of a machine, each shared alike by the messages that are on it at a time; a message is as
/// fast as the slowest of its shares. Who calls it goes through time: all starts and ends of a
/// moment come before share() of that moment, and none lies before it.
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
  struct SharedWay {
    double bytes_per_s = 0;
    std::vector<int> flows = {};
    bool changed = false;
  };
  /// A message that is, or was, under way.
  struct Flow {
    int message = 0;
    std::vector<int> ways = {};
    double bytes = 0;  ///< that are left, at `since`
    double speed = 0;
    double since = 0;
    int times_shared = 0;  ///< ends that were foreseen before are void
    bool ended = false;
  };
  struct End {
    double time = 0;
    int flow = 0;
    int times_shared = 0;
    bool operator>(const End& other) const {
      return std::tie(time, flow) > std::tie(other.time, other.flow);
    }
  };

  std::vector<int> ways_between(int from, int to);
  int way(const Name& name, double bytes_per_s);
  void change(int way);
  void share(int flow, double now);
  bool is_void(const End& end) const;
  void drop_void_ends();

  const Machine& machine_;
  std::map<Name, int> numbers_;
  std::vector<SharedWay> ways_;
  std::vector<Flow> flows_;
  std::vector<int> changed_;  // ways
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace ringlab::model
