// Message programs as graphs. Of one rank, for what touches the same slot: its streams are lanes, and
// what waits for an event comes after its record. Of all ranks, for progress: ranks are lanes, each
// in the order of issue, and messages happen when both exchanges have begun, which end after them.
//
// That is the strictest order in which ranks may be executed. Streams side by side wait for less,
// and messages of a communicator are matched in the same order, so what ends here ends there.
#include "property_tests/programs/message_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "property_tests/programs/message_meetings.h"
#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring {
namespace {

using namespace programs;

bool is_computed(const MessageOperation& operation) {
  return operation.action == MessageAction::attend ||
         operation.action == MessageAction::add_gradient;
}

bool fits(const MessageProgram& program, const MessageOperation& operation, int ranks) {
  const bool on_compute = operation.stream == StreamKind::compute;
  switch (operation.action) {
    case MessageAction::attend:
    case MessageAction::add_gradient:
      return on_compute;
    case MessageAction::exchange:
      for (const MessageEnd& end : operation.ends) {
        if (end.peer < 0 || end.peer >= ranks || end.peer == program.rank) return false;
      }
      return !on_compute;
    case MessageAction::record:
    case MessageAction::wait:
      return operation.event >= 0 && operation.event < program.events;
  }
  return false;
}

bool check_programs(const std::vector<MessageProgram>& programs, Findings& findings) {
  const auto ranks = static_cast<int>(programs.size());
  const std::size_t before = findings.size();
  for (int rank = 0; rank < ranks; ++rank) {
    const MessageProgram& program = programs[static_cast<std::size_t>(rank)];
    if (program.rank != rank || program.pass != programs.front().pass || program.events < 0) {
      findings.push_back("program " + std::to_string(rank) + " is of another rank or pass");
      continue;
    }
    for (const MessageOperation& operation : program.operations) {
      if (fits(program, operation, ranks)) continue;
      findings.push_back(place(rank, operation) + ": wrong stream, or a number out of range");
    }
  }
  return findings.size() == before;
}

/// What one rank is to get right by itself.
class RankCheck {
 public:
  RankCheck(const MessageProgram& program, Findings& findings)
      : program_(program), findings_(findings) {}

  void run() {
    const std::vector<StreamClock> clocks = follow();
    const auto has_ended = [&](std::size_t earlier, std::size_t later) {
      const std::size_t one = operation_of_[earlier], other = operation_of_[later];
      const auto stream = static_cast<int>(program_.operations[one].stream);
      return one != other && clocks[other].of(stream) >= clocks[one].of(stream);
    };
    for (const Race& race : races_among(accesses_, has_ended)) {
      const std::size_t one = operation_of_[race.earlier], other = operation_of_[race.later];
      find(other, one == other ? "its messages touch the same slot, and one of them writes it"
                               : "nothing makes it come after " +
                                     place(program_.rank, program_.operations[one]));
    }
  }

 private:
  void find(std::size_t number, const std::string& what) {
    findings_.push_back(place(program_.rank, program_.operations[number]) + ": " + what);
  }

  std::vector<StreamClock> follow() {
    std::vector<StreamStep> steps;
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      const MessageOperation& operation = program_.operations[i];
      StreamStep step{.stream = static_cast<int>(operation.stream)};
      if (operation.action == MessageAction::record) step.records = operation.event;
      if (operation.action == MessageAction::wait) step.waits_for = operation.event;
      if (operation.action == MessageAction::exchange) exchange(i);
      if (is_computed(operation)) {
        touch(i, accesses_of(computing_on_stream(program_.rank, operation), program_.pass));
      }
      steps.push_back(step);
    }
    return clocks_of(steps, kStreamsPerRank, program_.events,
                     [&](std::size_t number, const std::string& what) { find(number, what); });
  }

  /// Messages of an exchange are under way side by side.
  void exchange(std::size_t number) {
    const MessageOperation& operation = program_.operations[number];
    const std::pair turn(operation.step, operation.stream);
    if (turn <= last_turn_) find(number, "it is not in the order of rounds");
    last_turn_ = turn;
    for (const MessageEnd& end : operation.ends) {
      touch(number, {{.payload = payload_of(operation),
                      .place = {program_.rank, end.slot},
                      .writes = end.side == MessageSide::receive}});
    }
  }
  void touch(std::size_t number, Accesses accesses) {
    operation_of_.push_back(number);
    accesses_.push_back(std::move(accesses));
  }

  const MessageProgram& program_;
  Findings& findings_;
  std::pair<int, StreamKind> last_turn_{0, StreamKind::sums};
  std::vector<std::size_t> operation_of_;  // of accesses
  std::vector<Accesses> accesses_;
};

/// Executes all ranks as far as they get, and says what happened as a program of streams.
class Progress {
 public:
  Progress(const std::vector<MessageProgram>& programs, Findings& findings)
      : programs_(programs),
        findings_(findings),
        meetings_(meetings_of(programs)),
        order_(programs.size()) {
    if (!programs.empty()) happened_.pass = programs.front().pass;
    for (const MessageProgram& program : programs) add(program);
    for (const Meeting& meeting : meetings_.met) add(meeting);
    for (const MessagePlace& end : meetings_.alone) order_.block(end_of(end));
  }

  StreamProgram run() {
    std::set<MessagePlace> left(meetings_.alone.begin(), meetings_.alone.end());
    for (const Meeting& meeting : meetings_.met) left.insert({meeting.send, meeting.receive});
    std::set<std::size_t> begun;
    for (const std::size_t point : order_.reached()) {
      begun.insert(point);
      const Happening& happening = happenings_[point];
      if (happening.computing) happened_.operations.push_back(*happening.computing);
      if (happening.meeting == nullptr) continue;
      pass_on(*happening.meeting);
      left.erase(happening.meeting->send);
      left.erase(happening.meeting->receive);
    }
    for (const MessagePlace& end : left) {
      if (begun.contains(begin_of(end))) report(end);
    }
    return std::move(happened_);
  }

 private:
  /// At a point of the order.
  struct Happening {
    std::optional<StreamOperation> computing = {};
    const Meeting* meeting = nullptr;
  };
  std::size_t begin_of(const MessagePlace& end) const {
    return begins_[static_cast<std::size_t>(end.rank)][end.operation];
  }
  std::size_t end_of(const MessagePlace& end) const { return begin_of(end) + 1; }

  void add(const MessageProgram& program) {
    happened_.ranks.push_back(program.room);
    const auto lane = static_cast<std::size_t>(program.rank);
    auto& begins = begins_.emplace_back();
    for (const MessageOperation& operation : program.operations) {
      begins.push_back(order_.add(lane));
      Happening& begin = happenings_.emplace_back();
      if (is_computed(operation)) begin.computing = computing_on_stream(program.rank, operation);
      if (operation.action != MessageAction::exchange) continue;
      order_.add(lane);  // its end
      happenings_.emplace_back();
    }
  }
  void add(const Meeting& meeting) {
    const std::size_t message = order_.add();
    happenings_.push_back({.meeting = &meeting});
    for (const MessagePlace& end : {meeting.send, meeting.receive}) {
      order_.add_after(message, begin_of(end));
      order_.add_after(end_of(end), message);
    }
  }

  void pass_on(const Meeting& meeting) {
    const MessageOperation& from = operation_at(programs_, meeting.send);
    const MessageOperation& to = operation_at(programs_, meeting.receive);
    const MessageEnd& send = end_at(programs_, meeting.send);
    const auto find = [&](const std::string& what) {
      findings_.push_back(place(meeting.receive.rank, to) + ": " + what + " rank " +
                          std::to_string(meeting.send.rank) + " sends " +
                          std::to_string(send.owner) + " in round " + std::to_string(from.step));
    };
    if (send.owner != end_at(programs_, meeting.receive).owner) find("other sizes:");
    if (from.step != to.step) find("other rounds:");
    happened_.operations.push_back(copy_of(programs_, meeting));
  }

  void report(const MessagePlace& end) {
    findings_.push_back(place(end.rank, operation_at(programs_, end)) +
                        ": waits for ever for rank " + std::to_string(end_at(programs_, end).peer));
  }

  const std::vector<MessageProgram>& programs_;
  Findings& findings_;
  const Meetings meetings_;
  Order order_;
  std::vector<Happening> happenings_;             // by point
  std::vector<std::vector<std::size_t>> begins_;  // points, by rank and operation
  StreamProgram happened_;
};

}  // namespace

std::vector<std::string> check_message_programs(const std::vector<MessageProgram>& programs,
                                                const Schedule& schedule) {
  Findings findings;
  if (!check_programs(programs, findings)) return findings;
  for (const MessageProgram& program : programs) RankCheck(program, findings).run();
  const StreamProgram happened = Progress(programs, findings).run();
  if (!check_numbers(happened, schedule, findings)) return findings;
  check_contents(happened, schedule, findings);
  check_work(happened, schedule, findings);
  return findings;
}

}  // namespace ringlab::ring
