#include "property_tests/programs/trace_check.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>

#include "property_tests/programs/schedule_laws.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab {
namespace {

using programs::Findings;

/// An operation of the schedule, and the event that recorded it. Messages have a step for their
/// post only: an event lasts from post to wait.
struct Step {
  const Operation* operation = nullptr;
  const TraceEvent* event = nullptr;
};

/// The key by which operations pair with events.
struct EventName {
  TraceKind kind = TraceKind::compute;
  bool gradient = false;
  int owner = 0;
  int peer = kNobody;
  friend auto operator<=>(const EventName&, const EventName&) = default;
};

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

bool is_message(const TraceEvent& event) {
  return event.kind == TraceKind::send || event.kind == TraceKind::receive;
}

EventName name_of(const TraceEvent& event) {
  const bool message = is_message(event);
  return {.kind = event.kind,
          .gradient = message && event.gradient,
          .owner = event.owner,
          .peer = message ? event.peer : kNobody};
}

std::string at_rank(int rank, const TraceEvent& event) {
  return "rank " + std::to_string(rank) + ", " + describe(event);
}

/// Compares one rank's events with its program.
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

  /// Pairs operations and events in order within a name: sums come home from several ranks.
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

  /// Checks that a rank does one compute or sum after the other, in the order of the schedule.
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

  /// Checks that uses of a slot follow each other as in the schedule.
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

/// Bytes of the messages with the same name, of both ends.
struct EndBytes {
  std::vector<std::int64_t> sent, received;
};

std::string text_of(const std::vector<std::int64_t>& bytes) {
  return std::to_string(bytes.size()) + " messages, " +
         std::to_string(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0})) + " bytes";
}

void check_bytes(const std::vector<std::vector<TraceEvent>>& ranks, Pass pass, Findings& findings) {
  std::map<MessageKey, EndBytes> messages;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    for (const TraceEvent& event : ranks[static_cast<std::size_t>(rank)]) {
      if (event.pass != pass || !is_message(event)) continue;
      const bool sends = event.kind == TraceKind::send;
      EndBytes& ends = messages[{.from = sends ? rank : event.peer,
                                 .to = sends ? event.peer : rank,
                                 .owner = event.owner,
                                 .payload = event.gradient ? Payload::gradients : Payload::chunk}];
      (sends ? ends.sent : ends.received).push_back(event.bytes);
    }
  }
  for (const auto& [message, ends] : messages) {
    if (ends.sent == ends.received) continue;
    findings.push_back("rank " + std::to_string(message.from) + " to rank " +
                       std::to_string(message.to) + ", " +
                       (message.payload == Payload::gradients ? "gradients of chunk " : "chunk ") +
                       std::to_string(message.owner) + ": sent " + text_of(ends.sent) +
                       ", received " + text_of(ends.received));
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
