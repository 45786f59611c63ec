// Ways of limited speed, and users that share them max-min fairly.
#pragma once

#include <utility>
#include <vector>

namespace ringlab::model {

/// Speeds of users, each on one or two ways: no user can be faster without one that is as slow or
/// slower becoming slower still. Source: progressive filling, Bertsekas & Gallager, Data Networks,
/// 1992, section 6.5.2.
class Shares {
 public:
  int ways() const { return static_cast<int>(ways_.size()); }
  /// Their numbers count from 0. A way has `speed` > 0, which may be infinite.
  void make_way(double speed) { ways_.push_back({.speed = speed}); }
  void make_user(std::vector<int> ways) { users_.push_back({.ways = std::move(ways)}); }

  /// Lets a user take part in sharing from now on, or no longer.
  void add(int user);
  void remove(int user);

  using Speeds = std::vector<std::pair<int, double>>;
  /// The speeds of all users that one of `changed` can have made faster or slower. O(u log u +
  /// u · different speeds) for u of them.
  Speeds shared_anew(const std::vector<int>& changed);

 private:
  struct Way {
    double speed = 0;
    std::vector<int> users = {};
    bool is_met = false;
    double left = 0;  ///< speed that nobody has yet
    int waiting = 0;  ///< users without a speed
  };
  struct User {
    std::vector<int> ways;
    bool is_met = false;
    bool has_speed = false;
  };
  /// Users and ways that depend on each other.
  struct Region {
    std::vector<int> users = {};
    std::vector<int> ways = {};
  };

  Way& way_at(int number) { return ways_[static_cast<std::size_t>(number)]; }
  const Way& way_at(int number) const { return ways_[static_cast<std::size_t>(number)]; }
  User& user_at(int number) { return users_[static_cast<std::size_t>(number)]; }
  Region region_of(const std::vector<int>& changed);
  void meet_ways(int user, Region& region);
  double smallest_share(const Region& region) const;
  std::vector<int> ways_that_are_full(const Region& region, double share) const;
  void give(int user, double speed, Speeds& speeds);

  std::vector<Way> ways_;
  std::vector<User> users_;
};

}  // namespace ringlab::model
