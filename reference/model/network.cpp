#include "reference/model/network.h"

#include <algorithm>

namespace ringlab::model {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

}  // namespace

void NetworkModel::start(int message, int from, int to, std::int64_t bytes, double now) {
  const int number = pair_of(from, to);
  Pair& pair = pairs_[index(number)];
  pair.queue.push_back({message, static_cast<double>(bytes)});
  if (pair.queue.size() > 1) return;
  pair.speed = 0;
  pair.since = now;
  shares_.add(number);
  changed_.push_back(number);
}

void NetworkModel::share(double now) {
  for (const auto& [pair, speed] : shares_.shared_anew(std::exchange(changed_, {}))) {
    set_speed(pair, speed, now);
  }
}

double NetworkModel::next_end() {
  drop_void_ends();
  return ends_.empty() ? kNever : ends_.top().time;
}

std::vector<int> NetworkModel::take_ended(double now) {
  std::vector<int> messages;
  while (next_end() <= now) {
    const int number = ends_.top().pair;
    ends_.pop();
    Pair& pair = pairs_[index(number)];
    messages.push_back(pair.queue.front().message);
    pair.queue.pop_front();
    pair.since = now;
    ++pair.times_shared;
    if (!pair.queue.empty()) {
      foresee_end(number);
    } else {
      shares_.remove(number);
      changed_.push_back(number);
    }
  }
  return messages;
}

int NetworkModel::pair_of(int from, int to) {
  const auto [entry, is_new] =
      pair_numbers_.try_emplace({from, to}, static_cast<int>(pairs_.size()));
  if (is_new) {
    pairs_.emplace_back();
    shares_.make_user(ways_between(from, to));
  }
  return entry->second;
}

std::vector<int> NetworkModel::ways_between(int from, int to) {
  const bool goes_out = from / machine_.node_ranks != to / machine_.node_ranks;
  const double bytes_per_s = machine_.between(from, to).bytes_per_s;
  if (goes_out || machine_.wiring == Wiring::switched) {
    return {way({goes_out, WayKind::out, from, 0}, bytes_per_s),
            way({goes_out, WayKind::in, to, 0}, bytes_per_s)};
  }
  if (machine_.wiring == Wiring::shared && to < from) std::swap(from, to);
  return {way({false, WayKind::link, from, to}, bytes_per_s)};
}

int NetworkModel::way(const Name& name, double bytes_per_s) {
  const auto [entry, is_new] = way_numbers_.try_emplace(name, shares_.ways());
  if (is_new) shares_.make_way(bytes_per_s);
  return entry->second;
}

// A speed that changes moves the end of the message: a new end is foreseen, and the old ones are
// void, which costs less than finding them in the heap.
void NetworkModel::set_speed(int number, double speed, double now) {
  Pair& pair = pairs_[index(number)];
  if (speed == pair.speed) return;
  Waiting& first = pair.queue.front();
  // Time has to have passed: infinite speed leaves nothing then, and inf · 0 would be NaN.
  if (now > pair.since) first.bytes = std::max(0.0, first.bytes - pair.speed * (now - pair.since));
  pair.since = now;
  pair.speed = speed;
  ++pair.times_shared;
  foresee_end(number);
}

void NetworkModel::foresee_end(int number) {
  const Pair& pair = pairs_[index(number)];
  ends_.push({pair.since + pair.queue.front().bytes / pair.speed, number, pair.times_shared});
}

bool NetworkModel::is_void(const End& end) const {
  return end.times_shared != pairs_[index(end.pair)].times_shared;
}

void NetworkModel::drop_void_ends() {
  while (!ends_.empty() && is_void(ends_.top())) ends_.pop();
}

}  // namespace ringlab::model
