#include "property_tests/programs/message_meetings.h"

#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace ringlab::ring {
namespace {

/// Sender, receiver and communicator.
using Line = std::tuple<int, int, StreamKind>;

}  // namespace

Meetings meetings_of(const std::vector<MessageProgram>& programs) {
  Meetings meetings;
  std::map<Line, std::deque<MessagePlace>> sends, receives;
  for (const MessageProgram& program : programs) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const MessageOperation& operation = program.operations[i];
      for (std::size_t end = 0; end < operation.ends.size(); ++end) {
        const int peer = operation.ends[end].peer;
        const bool is_send = operation.ends[end].side == MessageSide::send;
        const Line line{is_send ? program.rank : peer, is_send ? peer : program.rank,
                        operation.stream};
        (is_send ? sends : receives)[line].push_back({program.rank, i, end});
      }
    }
  }
  for (auto& [line, waiting] : sends) {
    std::deque<MessagePlace>& others = receives[line];
    for (; !waiting.empty() && !others.empty(); waiting.pop_front(), others.pop_front()) {
      meetings.met.push_back({waiting.front(), others.front()});
    }
  }
  for (const auto& left : {sends, receives}) {
    for (const auto& [line, waiting] : left) {
      meetings.alone.insert(meetings.alone.end(), waiting.begin(), waiting.end());
    }
  }
  return meetings;
}

const MessageOperation& operation_at(const std::vector<MessageProgram>& programs,
                                     const MessagePlace& place) {
  return programs[static_cast<std::size_t>(place.rank)].operations[place.operation];
}
const MessageEnd& end_at(const std::vector<MessageProgram>& programs, const MessagePlace& place) {
  return operation_at(programs, place).ends[place.end];
}

StreamOperation copy_of(const std::vector<MessageProgram>& programs, const Meeting& meeting) {
  const MessageOperation& exchange = operation_at(programs, meeting.receive);
  const MessageEnd& receive = end_at(programs, meeting.receive);
  return {.action = StreamAction::copy,
          .rank = meeting.receive.rank,
          .stream = exchange.stream,
          .step = exchange.step,
          .owner = receive.owner,
          .payload = payload_of(exchange),
          .from = {meeting.send.rank, end_at(programs, meeting.send).slot},
          .to = {meeting.receive.rank, receive.slot}};
}

StreamOperation computing_on_stream(int rank, const MessageOperation& operation) {
  const bool attends = operation.action == MessageAction::attend;
  return {.action = attends ? StreamAction::attend : StreamAction::add_gradient,
          .rank = rank,
          .step = operation.step,
          .owner = operation.owner,
          .slot = operation.slot,
          .gradient = operation.gradient,
          .addend = operation.addend};
}

}  // namespace ringlab::ring
