#include "stages/common/call_events.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "optimized/transport/message_flow.h"
#include "stages/common/chunk_slot.h"

namespace ringlab::stages {
namespace {

/// The calls of one rank, from first to last.
class EventsOfRank {
 public:
  EventsOfRank(const MessageFlow& flow, int rank) : rank_(rank) {
    for (const RecordedMessage& message : flow.receives(rank)) note(message);
    for (const RecordedMessage& message : flow.sends(rank)) note(message);
    for (const NetworkCall& call : flow.ranks()[static_cast<std::size_t>(rank)].calls) add(call);
  }
  std::vector<TraceEvent> take() { return std::move(events_); }

 private:
  void note(const RecordedMessage& message) {
    messages_[message.call.request] = &message;
    if (message.call.kind == CallKind::receive) {
      slots_[message.call.tag].try_emplace(message.call.begin,
                                           static_cast<int>(slots_[message.call.tag].size()));
    }
  }

  void add(const NetworkCall& call) {
    if (call.backward && !backward_) step_ = 0;
    backward_ = call.backward;
    if (call.kind == CallKind::compute) return add_block(call);
    if (call.kind == CallKind::wait) return add_wait(call);
    add_post(call);
  }

  void add_block(const NetworkCall& block) {
    const bool goes_on = last_ == CallKind::compute && hop_ == block.hop && !events_.empty();
    last_ = CallKind::compute;
    hop_ = block.hop;
    if (goes_on) {
      TraceEvent& event = events_.back();
      event.end_ns = block.end_ns;
      if (event.owner != block.owner) event.owner = kNobody, event.slot = kHome;
      return;
    }
    TraceEvent event = event_at(TraceKind::compute, block);
    event.owner = block.owner;
    const auto place = places_.find(block.owner);
    if (place != places_.end()) event.slot = place->second;
    events_.push_back(event);
    ++step_;
  }

  /// Another message of a chunk since the rank last stood still is a part of the same event.
  void add_post(const NetworkCall& call) {
    if (last_ != CallKind::send) posted_ = events_.size();
    last_ = CallKind::send;
    const RecordedMessage& message = *messages_[call.request];
    TraceEvent event =
        event_at(call.kind == CallKind::send ? TraceKind::send : TraceKind::receive, call);
    event.peer = call.peer;
    event.owner = message.owner.value_or(kNobody);
    event.slot = slot_of(call);
    event.gradient = call.tag == kKeyGradients || call.tag == kValueGradients;
    // Gradients go straight home; what was in their memory before says nothing of them.
    if (event.gradient) event.owner = call.kind == CallKind::send ? call.peer : rank_;
    event.bytes = static_cast<std::int64_t>(call.bytes);
    const auto first = events_.begin() + static_cast<std::ptrdiff_t>(posted_);
    const auto same = std::find_if(first, events_.end(), [&](const TraceEvent& other) {
      return other.kind == event.kind && other.peer == event.peer && other.owner == event.owner &&
             other.gradient == event.gradient;
    });
    event_of_[call.request] = static_cast<std::size_t>(same - events_.begin());
    if (same == events_.end()) {
      events_.push_back(event);
    } else {
      same->bytes += event.bytes;
    }
  }

  void add_wait(const NetworkCall& wait) {
    const auto found = event_of_.find(wait.request);
    if (found == event_of_.end()) return;  // a request of nobody
    TraceEvent& message = events_[found->second];
    message.end_ns = std::max(message.end_ns, wait.end_ns);
    if (message.kind == TraceKind::receive && !message.gradient) {
      places_[message.owner] = message.slot;
    }
    const bool goes_on = last_ == CallKind::wait && waited_ == found->second;
    last_ = CallKind::wait;
    waited_ = found->second;
    if (goes_on) {
      events_.back().end_ns = wait.end_ns;
      return;
    }
    TraceEvent event = event_at(TraceKind::wait, wait);
    event.peer = message.peer;
    event.owner = message.owner;
    event.slot = message.slot;
    event.gradient = message.gradient;
    events_.push_back(event);
  }

  TraceEvent event_at(TraceKind kind, const NetworkCall& call) const {
    return {.kind = kind,
            .rank = rank_,
            .step = step_,
            .pass = call.backward ? Pass::backward : Pass::forward,
            .begin_ns = call.begin_ns,
            .end_ns = call.end_ns};
  }

  /// kHome for what is sent out of the rank's own memory.
  int slot_of(const NetworkCall& call) const {
    const auto places = slots_.find(call.tag);
    if (places == slots_.end()) return kHome;
    const auto place = places->second.find(call.begin);
    return place == places->second.end() ? kHome : place->second;
  }

  int rank_;
  int step_ = 0, hop_ = -1;
  bool backward_ = false;
  std::optional<CallKind> last_;  ///< of both posts `send`
  std::size_t posted_ = 0;        ///< the first event since it last stood still
  std::size_t waited_ = 0;        ///< the event of the last wait's message
  std::map<std::int64_t, const RecordedMessage*> messages_;  ///< by request
  std::map<std::int64_t, std::size_t> event_of_;             ///< by request
  std::map<int, std::map<const std::byte*, int>> slots_;     ///< by tag and address
  std::map<int, int> places_;                                ///< by owner
  std::vector<TraceEvent> events_;
};

}  // namespace

std::vector<std::vector<TraceEvent>> events_of(const std::vector<RankCalls>& calls) {
  const MessageFlow flow(calls);
  std::vector<std::vector<TraceEvent>> events;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    events.push_back(EventsOfRank(flow, static_cast<int>(rank)).take());
  }
  return events;
}

}  // namespace ringlab::stages
