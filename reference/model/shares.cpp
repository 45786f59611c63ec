#include "reference/model/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringlab::model {
namespace {

/// Shares that differ by roundings only are one share.
constexpr double kAlike = 1e-12;

}  // namespace

void Shares::add(int user) {
  for (const int way : user_at(user).ways) way_at(way).users.push_back(user);
}

void Shares::remove(int user) {
  for (const int way : user_at(user).ways) std::erase(way_at(way).users, user);
}

Shares::Speeds Shares::shared_anew(const std::vector<int>& changed) {
  const Region region = region_of(changed);
  Speeds speeds;
  while (speeds.size() < region.users.size()) {
    const double share = smallest_share(region);
    for (const int way : ways_that_are_full(region, share)) {
      for (const int user : way_at(way).users) give(user, share, speeds);
    }
  }
  for (const int way : region.ways) way_at(way).is_met = false;
  for (const int user : region.users) {
    user_at(user).is_met = user_at(user).has_speed = false;
  }
  return speeds;
}

Shares::Region Shares::region_of(const std::vector<int>& changed) {
  Region region;
  for (const int user : changed) meet_ways(user, region);
  for (std::size_t i = 0; i < region.ways.size(); ++i) {
    for (const int user : way_at(region.ways[i]).users) {
      if (std::exchange(user_at(user).is_met, true)) continue;
      region.users.push_back(user);
      meet_ways(user, region);
    }
  }
  return region;
}

void Shares::meet_ways(int user, Region& region) {
  for (const int number : user_at(user).ways) {
    Way& way = way_at(number);
    if (std::exchange(way.is_met, true)) continue;
    way.left = way.speed;
    way.waiting = static_cast<int>(way.users.size());
    region.ways.push_back(number);
  }
}

double Shares::smallest_share(const Region& region) const {
  double share = std::numeric_limits<double>::infinity();
  for (const int number : region.ways) {
    const Way& way = way_at(number);
    if (way.waiting > 0) share = std::min(share, way.left / way.waiting);
  }
  return share;
}

std::vector<int> Shares::ways_that_are_full(const Region& region, double share) const {
  std::vector<int> full;
  for (const int number : region.ways) {
    const Way& way = way_at(number);
    if (way.waiting > 0 && way.left / way.waiting <= share * (1 + kAlike)) full.push_back(number);
  }
  return full;
}

void Shares::give(int user, double speed, Speeds& speeds) {
  if (std::exchange(user_at(user).has_speed, true)) return;
  speeds.emplace_back(user, speed);
  for (const int number : user_at(user).ways) {
    Way& way = way_at(number);
    --way.waiting;
    // An infinite way has as much left as before.
    if (std::isfinite(way.left)) way.left -= speed;
  }
}

}  // namespace ringlab::model
