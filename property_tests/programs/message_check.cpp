// Message programs as graphs. For slots a graph of each rank: its streams are lanes, and a wait for
// an event comes after its record. For progress a graph of all ranks: ranks are lanes, each in the
// order of issue; messages happen when both exchanges have begun, and exchanges end after their
// messages.
//
// No order in which ranks may be executed is stricter. Streams side by side wait for less, and
// messages of a communicator are matched in the same order, so programs that end here end there.
#include "property_tests/programs/message_check.h"

#include <algorithm>
#include <set>

#include "property_tests/programs/message_order.h"
#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring {
namespace {

using namespace programs;

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

/// Checks the laws that one rank has to keep by itself.
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

  /// Notes the slots of an exchange, whose messages are under way side by side.
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
  std::vector<std::size_t> operation_of_;  // by number of the access
  std::vector<Accesses> accesses_;
};

std::string place_of(const MessageOrder& messages, const MessagePlace& end) {
  return place(end.rank, messages.operation(end));
}

void check_meeting(const MessageOrder& messages, const Meeting& meeting, Findings& findings) {
  const int round = messages.operation(meeting.send).step;
  const int owner = messages.end(meeting.send).owner;
  const auto find = [&](const std::string& what) {
    findings.push_back(place_of(messages, meeting.receive) + ": " + what + " rank " +
                       std::to_string(meeting.send.rank) + " sends " + std::to_string(owner) +
                       " in round " + std::to_string(round));
  };
  if (owner != messages.end(meeting.receive).owner) find("other sizes:");
  if (round != messages.operation(meeting.receive).step) find("other rounds:");
}

/// Executes all ranks as far as they get, and returns what happened as a program of streams.
StreamProgram execute(const std::vector<MessageProgram>& programs, Findings& findings) {
  const MessageOrder messages(programs, Lanes::ranks);
  StreamProgram happened;
  for (const MessageProgram& program : programs) {
    happened.pass = program.pass;
    happened.ranks.push_back(program.room);
  }
  std::set<MessagePlace> left(messages.ends().begin(), messages.ends().end());
  std::set<std::size_t> reached;
  for (const std::size_t point : messages.happenings().order.reached()) {
    reached.insert(point);
    const Happening& happening = messages.happenings().at[point];
    const bool begins = happening.told == Told::begin_copy;
    if (happening.operation != nullptr && !begins) {
      happened.operations.push_back(*happening.operation);
    }
    const Meeting* meeting = messages.arrived_at(point);
    if (meeting == nullptr) continue;
    check_meeting(messages, *meeting, findings);
    left.erase(meeting->send);
    left.erase(meeting->receive);
  }
  for (const MessagePlace& end : left) {
    if (!reached.contains(messages.begin_of(end))) continue;
    findings.push_back(place_of(messages, end) + ": waits for ever for rank " +
                       std::to_string(messages.end(end).peer));
  }
  return happened;
}

}  // namespace

std::vector<std::string> check_message_programs(const std::vector<MessageProgram>& programs,
                                                const Schedule& schedule) {
  Findings findings;
  if (!check_programs(programs, findings)) return findings;
  for (const MessageProgram& program : programs) RankCheck(program, findings).run();
  const StreamProgram happened = execute(programs, findings);
  if (!check_numbers(happened, schedule, findings)) return findings;
  check_contents(happened, schedule, findings);
  check_work(happened, schedule, findings);
  return findings;
}

}  // namespace ringlab::ring
