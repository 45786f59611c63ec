#include "property_tests/programs/trace_check.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

#include "reference/core/schedule/operation_words.h"

namespace ringlab {
namespace {

using Findings = std::vector<std::string>;

/// A slot of K and V, or of gradients.
struct SlotName {
  bool gradient = false;
  int slot = kHome;
  friend bool operator==(const SlotName&, const SlotName&) = default;
};

/// An operation of the schedule, the event that recorded it, and which slots it reads or writes.
/// Of messages only the posts are taken: an event lasts from post to wait.
struct Step {
  const Operation* operation = nullptr;
  const TraceEvent* event = nullptr;
  std::vector<SlotName> reads = {};
  std::vector<SlotName> writes = {};
};

/// What pairs operations with events.
struct EventName {
  TraceKind kind = TraceKind::compute;
  bool gradient = false;
  int owner = 0;
  int peer = kNobody;
  friend auto operator<=>(const EventName&, const EventName&) = default;
};

/// nullptr for waits, which are the ends of what their posts began.
Step step_of(const Operation& operation, Pass pass) {
  const SlotName chunk{.gradient = false, .slot = operation.slot};
  const SlotName sum{.gradient = true, .slot = operation.gradient};
  const SlotName addend{.gradient = true, .slot = operation.addend};
  switch (operation.verb) {
    case Verb::compute:
      if (pass == Pass::forward) return {.operation = &operation, .reads = {chunk}};
      return {.operation = &operation, .reads = {chunk}, .writes = {sum}};
    case Verb::add:
      return {.operation = &operation, .reads = {addend}, .writes = {sum}};
    case Verb::post_receive:
      return {.operation = &operation, .writes = {concerns_gradients(operation) ? sum : chunk}};
    case Verb::post_send:
      return {.operation = &operation, .reads = {concerns_gradients(operation) ? sum : chunk}};
    case Verb::wait_receive:
    case Verb::wait_send:
      break;
  }
  return {};
}

TraceKind kind_of(const Operation& operation) {
  if (operation.verb == Verb::compute) return TraceKind::compute;
  if (operation.verb == Verb::add) return TraceKind::add;
  return is_send(operation) ? TraceKind::send : TraceKind::receive;
}

EventName name_of(const Operation& operation) {
  const bool message = is_message(operation);
  return {.kind = kind_of(operation),
          .gradient = message && concerns_gradients(operation),
          .owner = operation.owner,
          .peer = message ? operation.peer : kNobody};
}

EventName name_of(const TraceEvent& event) {
  const bool message = event.kind == TraceKind::send || event.kind == TraceKind::receive;
  return {.kind = event.kind,
          .gradient = message && event.gradient,
          .owner = event.owner,
          .peer = message ? event.peer : kNobody};
}

std::string at_rank(int rank, const TraceEvent& event) {
  return "rank " + std::to_string(rank) + ", " + describe(event);
}

/// One rank's events against its program.
class RankTrace {
 public:
  RankTrace(int rank, const std::vector<TraceEvent>& events, const RankSchedule& program, Pass pass,
            Findings& findings)
      : rank_(rank), findings_(findings) {
    collect(events, pass);
    pair(program, pass);
  }

  void check() {
    for (const Step& step : steps_) check_event(*step.operation, *step.event);
    check_order();
    for (std::size_t first = 0; first < steps_.size(); ++first) {
      for (std::size_t second = first + 1; second < steps_.size(); ++second) {
        check_apart(steps_[first], steps_[second]);
      }
    }
  }

 private:
  void report(const TraceEvent& event, const std::string& what) {
    findings_.push_back(at_rank(rank_, event) + ": " + what);
  }

  void collect(const std::vector<TraceEvent>& events, Pass pass) {
    for (const TraceEvent& event : events) {
      if (event.pass != pass || event.kind == TraceKind::wait) continue;
      if (event.rank != rank_) report(event, "it says rank " + std::to_string(event.rank));
      recorded_[name_of(event)].push_back(&event);
    }
    for (auto& [name, same] : recorded_) {
      std::ranges::stable_sort(same, {}, &TraceEvent::begin_ns);
    }
  }

  /// Events with the same name, sums that come home from several ranks, pair up in order.
  void pair(const RankSchedule& program, Pass pass) {
    std::map<EventName, std::size_t> taken;
    for (const Operation& operation : program.operations) {
      Step step = step_of(operation, pass);
      if (step.operation == nullptr) continue;
      const auto found = recorded_.find(name_of(operation));
      std::size_t& next = taken[name_of(operation)];
      if (found == recorded_.end() || next >= found->second.size()) {
        report_missing(operation);
        continue;
      }
      step.event = found->second[next++];
      steps_.push_back(std::move(step));
    }
    for (const auto& [name, same] : recorded_) {
      for (std::size_t i = taken[name]; i < same.size(); ++i) {
        report(*same[i], "the schedule has no such operation");
      }
    }
  }

  void report_missing(const Operation& operation) {
    findings_.push_back("rank " + std::to_string(rank_) + ", step " +
                        std::to_string(operation.step) + ": " +
                        std::string(action_name(operation)) + " of chunk " +
                        std::to_string(operation.owner) + " was not recorded");
  }

  void check_event(const Operation& operation, const TraceEvent& event) {
    const bool sum = name_of(operation).gradient || event.kind == TraceKind::add;
    const int slot = sum ? operation.gradient : operation.slot;
    if (event.end_ns < event.begin_ns) report(event, "it ends before it begins");
    if (event.step != operation.step) {
      report(event, "the schedule has it in step " + std::to_string(operation.step));
    }
    if (event.slot != slot) {
      report(event, "it used slot " + std::to_string(event.slot) + ", the schedule says " +
                        std::to_string(slot));
    }
  }

  /// A rank does one compute or sum after the other, in the order of the schedule.
  void check_order() {
    const TraceEvent* before = nullptr;
    for (const Step& step : steps_) {
      if (step.event->kind != TraceKind::compute && step.event->kind != TraceKind::add) continue;
      if (before != nullptr && step.event->begin_ns < before->end_ns) {
        report(*step.event, "it began before the end of " + describe(*before));
      }
      before = step.event;
    }
  }

  static bool conflict(const Step& first, const Step& second) {
    const auto touches = [](const std::vector<SlotName>& some, const std::vector<SlotName>& other) {
      return std::ranges::find_first_of(some, other) != some.end();
    };
    return touches(first.writes, second.writes) || touches(first.writes, second.reads) ||
           touches(first.reads, second.writes);
  }

  /// `first` stands before `second` in the schedule.
  void check_apart(const Step& first, const Step& second) {
    if (!conflict(first, second) || first.event->end_ns <= second.event->begin_ns) return;
    report(*second.event, "it used its slot before the end of " + describe(*first.event));
  }

  int rank_;
  Findings& findings_;
  std::map<EventName, std::vector<const TraceEvent*>> recorded_;
  std::vector<Step> steps_;
};

/// Bytes of the messages from one rank to another about one chunk.
struct Ends {
  std::vector<std::int64_t> sent, received;
};
using MessageName = std::pair<std::pair<int, int>, std::pair<int, bool>>;

void check_bytes(const std::vector<std::vector<TraceEvent>>& ranks, Pass pass, Findings& findings) {
  std::map<MessageName, Ends> messages;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    for (const TraceEvent& event : ranks[static_cast<std::size_t>(rank)]) {
      if (event.pass != pass) continue;
      const std::pair<int, bool> what = {event.owner, event.gradient};
      if (event.kind == TraceKind::send) {
        messages[{{rank, event.peer}, what}].sent.push_back(event.bytes);
      }
      if (event.kind == TraceKind::receive) {
        messages[{{event.peer, rank}, what}].received.push_back(event.bytes);
      }
    }
  }
  for (const auto& [name, ends] : messages) {
    if (ends.sent == ends.received) continue;
    const auto sum = [](const std::vector<std::int64_t>& bytes) {
      std::int64_t total = 0;
      for (const std::int64_t each : bytes) total += each;
      return std::to_string(bytes.size()) + " messages, " + std::to_string(total) + " bytes";
    };
    findings.push_back("rank " + std::to_string(name.first.first) + " to rank " +
                       std::to_string(name.first.second) + ", " +
                       (name.second.second ? "gradients of chunk " : "chunk ") +
                       std::to_string(name.second.first) + ": sent " + sum(ends.sent) +
                       ", received " + sum(ends.received));
  }
}

}  // namespace

std::vector<std::string> check_trace(const std::vector<std::vector<TraceEvent>>& ranks,
                                     const Schedule& schedule) {
  Findings findings;
  if (ranks.size() != schedule.ranks.size()) {
    findings.push_back("events of " + std::to_string(ranks.size()) + " ranks for a schedule of " +
                       std::to_string(schedule.ranks.size()));
    return findings;
  }
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    RankTrace(rank, ranks[at], schedule.ranks[at], schedule.pass, findings).check();
  }
  check_bytes(ranks, schedule.pass, findings);
  return findings;
}

}  // namespace ringlab
