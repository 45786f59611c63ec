#include "property_tests/programs/trace_check.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

#include "property_tests/programs/schedule_laws.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab {
namespace {

using programs::Findings;

/// An operation of the schedule, and the event that recorded it. Of messages only the posts are
/// taken: an event lasts from post to wait.
struct Step {
  const Operation* operation = nullptr;
  const TraceEvent* event = nullptr;
};

/// What pairs operations with events.
struct EventName {
  TraceKind kind = TraceKind::compute;
  bool gradient = false;
  int owner = 0;
  int peer = kNobody;
  friend auto operator<=>(const EventName&, const EventName&) = default;
};

bool is_wait(const Operation& operation) {
  return operation.verb == Verb::wait_receive || operation.verb == Verb::wait_send;
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
      : rank_(rank), pass_(pass), findings_(findings) {
    collect(events);
    pair(program);
  }

  void check() {
    for (const Step& step : steps_) check_event(*step.operation, *step.event);
    check_order();
    check_races();
  }

 private:
  void report(const TraceEvent& event, const std::string& what) {
    findings_.push_back(at_rank(rank_, event) + ": " + what);
  }

  void collect(const std::vector<TraceEvent>& events) {
    for (const TraceEvent& event : events) {
      if (event.pass != pass_ || event.kind == TraceKind::wait) continue;
      if (event.rank != rank_) report(event, "it says rank " + std::to_string(event.rank));
      recorded_[name_of(event)].push_back(&event);
    }
    for (auto& [name, same] : recorded_) {
      std::ranges::stable_sort(same, {}, &TraceEvent::begin_ns);
    }
  }

  /// Events with the same name, sums that come home from several ranks, pair up in order.
  void pair(const RankSchedule& program) {
    std::map<EventName, std::size_t> taken;
    for (const Operation& operation : program.operations) {
      if (is_wait(operation)) continue;  // the end of what its post began
      const auto found = recorded_.find(name_of(operation));
      std::size_t& next = taken[name_of(operation)];
      if (found == recorded_.end() || next >= found->second.size()) {
        report_missing(operation);
        continue;
      }
      steps_.push_back({&operation, found->second[next++]});
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

  /// Uses of a slot follow each other as in the schedule.
  void check_races() {
    std::vector<programs::Accesses> accesses;
    for (const Step& step : steps_) {
      accesses.push_back(programs::accesses_of(rank_, *step.operation, pass_));
    }
    const auto has_ended = [&](std::size_t earlier, std::size_t later) {
      return steps_[earlier].event->end_ns <= steps_[later].event->begin_ns;
    };
    for (const programs::Race& race : programs::races_among(accesses, has_ended)) {
      report(*steps_[race.later].event,
             "it used its slot before the end of " + describe(*steps_[race.earlier].event));
    }
  }

  int rank_;
  Pass pass_;
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
