#include "property_tests/programs/message_order.h"

#include <map>
#include <tuple>
#include <utility>

namespace ringlab::ring {
namespace {

/// Sender, receiver and communicator.
using Line = std::tuple<int, int, StreamKind>;
/// Ends of one kind, in the order in which they are issued.
using EndsOfLines = std::map<Line, std::deque<MessagePlace>>;

std::size_t stream_of(int rank, const MessageOperation& operation) {
  return static_cast<std::size_t>(stream_number(rank, operation.stream));
}

}  // namespace

bool is_computed(const MessageOperation& operation) {
  return operation.action == MessageAction::attend ||
         operation.action == MessageAction::add_gradient;
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

MessageOrder::MessageOrder(const std::vector<MessageProgram>& programs, Lanes lanes)
    : programs_(programs),
      happenings_{.order = programs::Order(programs.size() * kStreamsPerRank)} {
  for (const MessageProgram& program : programs) add(program, lanes);
  first_message_ = happenings_.at.size();
  meet_in_order();
}

void MessageOrder::meet_in_order() {
  EndsOfLines sends, receives;
  for (const MessagePlace& mine : ends_) {
    const MessageEnd& my_end = end(mine);
    const bool is_send = my_end.side == MessageSide::send;
    const Line line{is_send ? mine.rank : my_end.peer, is_send ? my_end.peer : mine.rank,
                    operation(mine).stream};
    std::deque<MessagePlace>& others = (is_send ? receives : sends)[line];
    if (others.empty()) {
      (is_send ? sends : receives)[line].push_back(mine);
      continue;
    }
    const MessagePlace other = others.front();
    others.pop_front();
    meet(is_send ? mine : other, is_send ? other : mine);
  }
  for (const EndsOfLines& alone : {sends, receives}) {
    for (const auto& [line, ends] : alone) {
      for (const MessagePlace& end : ends) happenings_.order.block(begin_of(end) + 1);
    }
  }
}

void MessageOrder::add(const MessageProgram& program, Lanes lanes) {
  programs::Events events(happenings_.order, program.events);
  std::vector<std::size_t>& begins = begins_.emplace_back();
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const MessageOperation& operation = program.operations[i];
    const std::size_t stream = stream_of(program.rank, operation);
    const std::size_t lane =
        lanes == Lanes::streams ? stream : static_cast<std::size_t>(program.rank);
    Happening here{.stream = stream};
    if (is_computed(operation)) {
      here.told = operation.action == MessageAction::attend ? Told::attend : Told::add_gradient;
      here.operation = &computing_.emplace_back(computing_on_stream(program.rank, operation));
    }
    begins.push_back(happenings_.add(lane, here));
    if (operation.action == MessageAction::exchange) happenings_.add(lane, {.stream = stream});
    for (std::size_t end = 0; end < operation.ends.size(); ++end) {
      ends_.push_back({program.rank, i, end});
    }
    if (operation.action == MessageAction::record) events.record(operation.event, begins.back());
    if (operation.action == MessageAction::wait) events.wait(operation.event, begins.back());
  }
}

void MessageOrder::meet(const MessagePlace& send, const MessagePlace& receive) {
  const MessageOperation& exchange = operation(receive);
  const Meeting& meeting =
      meetings_.emplace_back(Meeting{send,
                                     receive,
                                     {.action = StreamAction::copy,
                                      .rank = receive.rank,
                                      .stream = exchange.stream,
                                      .step = exchange.step,
                                      .owner = end(receive).owner,
                                      .payload = payload_of(exchange),
                                      .from = {send.rank, end(send).slot},
                                      .to = {receive.rank, end(receive).slot}}});
  const std::size_t stream = stream_of(receive.rank, exchange);
  const std::size_t begin = happenings_.add({Told::begin_copy, &meeting.copy, stream});
  const std::size_t arrival = happenings_.add({Told::end_copy, &meeting.copy, stream});
  happenings_.order.add_after(arrival, begin);
  for (const MessagePlace& end : {send, receive}) {
    happenings_.order.add_after(begin, begin_of(end));
    happenings_.order.add_after(begin_of(end) + 1, arrival);
  }
}

const Meeting* MessageOrder::arrived_at(std::size_t point) const {
  if (happenings_.at[point].told != Told::end_copy) return nullptr;
  return &meetings_[(point - first_message_) / 2];
}

const MessageOperation& MessageOrder::operation(const MessagePlace& place) const {
  return programs_[static_cast<std::size_t>(place.rank)].operations[place.operation];
}

}  // namespace ringlab::ring
