#include "reference/model/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlab::model {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

}  // namespace

void NetworkModel::start(int message, int from, int to, std::int64_t bytes, double now) {
  const int number = static_cast<int>(flows_.size());
  flows_.push_back({.message = message,
                    .ways = ways_between(from, to),
                    .bytes = static_cast<double>(bytes),
                    .since = now});
  for (const int way : flows_.back().ways) {
    ways_[index(way)].flows.push_back(number);
    change(way);
  }
}

void NetworkModel::share(double now) {
  for (const int way : std::exchange(changed_, {})) {
    ways_[index(way)].changed = false;
    for (const int flow : ways_[index(way)].flows) share(flow, now);
  }
}

double NetworkModel::next_end() {
  drop_void_ends();
  return ends_.empty() ? kNever : ends_.top().time;
}

std::vector<int> NetworkModel::take_ended(double now) {
  std::vector<int> messages;
  while (next_end() <= now) {
    const int number = ends_.top().flow;
    ends_.pop();
    Flow& flow = flows_[index(number)];
    flow.ended = true;
    for (const int way : flow.ways) {
      std::erase(ways_[index(way)].flows, number);
      change(way);
    }
    messages.push_back(flow.message);
  }
  return messages;
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
  const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<int>(ways_.size()));
  if (is_new) ways_.push_back({.bytes_per_s = bytes_per_s});
  return entry->second;
}

void NetworkModel::change(int way) {
  if (!std::exchange(ways_[index(way)].changed, true)) changed_.push_back(way);
}

// A share that changes moves the end of the message: a new end is foreseen, and the old ones are
// void, which costs less than finding them in the heap.
void NetworkModel::share(int number, double now) {
  Flow& flow = flows_[index(number)];
  // With infinite speed nothing is left, and inf · 0 would be NaN.
  if (now > flow.since) flow.bytes = std::max(0.0, flow.bytes - flow.speed * (now - flow.since));
  flow.since = now;
  flow.speed = kNever;
  for (const int way : flow.ways) {
    const auto flows = static_cast<double>(ways_[index(way)].flows.size());
    flow.speed = std::min(flow.speed, ways_[index(way)].bytes_per_s / flows);
  }
  ends_.push({now + flow.bytes / flow.speed, number, ++flow.times_shared});
}

bool NetworkModel::is_void(const End& end) const {
  const Flow& flow = flows_[index(end.flow)];
  return flow.ended || end.times_shared != flow.times_shared;
}

void NetworkModel::drop_void_ends() {
  while (!ends_.empty() && is_void(ends_.top())) ends_.pop();
}

}  // namespace ringlab::model
