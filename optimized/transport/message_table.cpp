#include "optimized/transport/message_table.h"

#include <utility>

#include "optimized/transport/post_check.h"
#include "reference/core/error.h"

namespace ringlab::in_process {

std::string describe(const HalfMessage& operation) {
  const PairedMessage& m = *operation.message;
  const std::string tag = std::to_string(m.tag);
  if (operation.direction == Direction::send) {
    return "to send tag " + tag + " to rank " + std::to_string(m.to);
  }
  return "to receive tag " + tag + " from rank " + std::to_string(m.from);
}

int peer_of(const HalfMessage& operation) {
  const PairedMessage& m = *operation.message;
  return operation.direction == Direction::send ? m.to : m.from;
}

MessageTable::MessageTable(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

void MessageTable::check(const Address& address, Direction direction) const {
  const char* const call = direction == Direction::send ? "post_send" : "post_receive";
  check_post({address.rank, call, address.peer, address.tag}, ranks());
}

// Tags number the messages of a pair of ranks, and the pairs are few for each rank.
std::size_t MessageTable::ChannelHash::operator()(const Channel& channel) const {
  std::uint64_t hash = static_cast<std::uint32_t>(channel.from);
  for (const int part : {channel.to, channel.tag}) {
    hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u + static_cast<std::uint32_t>(part);
  }
  return hash ^ (hash >> 32);
}

// Pairs in the order of posting: the queue of a channel holds ends of one side only, because an
// end of the other side takes its head at once. Posts alone thus decide which send meets which
// receive, and no delay changes it.
MessagePtr MessageTable::take_counterpart(const Channel& channel, Direction direction) {
  const auto [entry, is_new] = unpaired_.try_emplace(channel);
  std::list<MessagePtr>& queue = entry->second;
  const bool holds_sends = !is_new && queue.front()->send_posted;
  if (!is_new && holds_sends == (direction == Direction::receive)) {
    MessagePtr message = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) unpaired_.erase(entry);
    return message;
  }
  // Memory may run out in tests of just that: the table must stay one that can be read.
  try {
    auto message = std::make_shared<PairedMessage>();
    message->from = channel.from;
    message->to = channel.to;
    message->tag = channel.tag;
    queue.push_back(message);
    return message;
  } catch (...) {  // no entry is empty
    if (is_new) unpaired_.erase(entry);
    throw;
  }
}

Request MessageTable::open_request(int rank, HalfMessage operation) {
  RankTable& state = ranks_[static_cast<std::size_t>(rank)];
  // The rank is part of the number, so that a request handed to another rank is recognised.
  const std::int64_t id = state.next_id++ * ranks() + rank;
  state.open.emplace(id, std::move(operation));
  return {id};
}

MessageTable::PostedPair MessageTable::post_send(const Address& address,
                                                 std::span<const std::byte> bytes) {
  check(address, Direction::send);
  const Channel channel{address.rank, address.peer, address.tag};
  MessagePtr message = take_counterpart(channel, Direction::send);
  message->send_posted = true;
  message->source = bytes;
  // Kept apart from `source`, which is gone once the bytes were taken.
  message->sent_bytes = bytes.size();
  Traffic& traffic = ranks_[static_cast<std::size_t>(address.rank)].traffic;
  traffic.sent_bytes += static_cast<std::int64_t>(bytes.size());
  ++traffic.sent_messages;
  const Request request = open_request(address.rank, {Direction::send, message});
  return {request, std::move(message)};
}

MessageTable::PostedPair MessageTable::post_receive(const Address& address,
                                                    std::span<std::byte> buffer) {
  check(address, Direction::receive);
  const Channel channel{address.peer, address.rank, address.tag};
  MessagePtr message = take_counterpart(channel, Direction::receive);
  message->receive_posted = true;
  message->target = buffer;
  const Request request = open_request(address.rank, {Direction::receive, message});
  return {request, std::move(message)};
}

HalfMessage MessageTable::find(int rank, Request request) const {
  const auto& open = ranks_[static_cast<std::size_t>(rank)].open;
  const auto found = open.find(request.id);
  if (found == open.end()) {
    throw_usage_error({.where = "rank " + std::to_string(rank) + ", wait",
                       .expected = "a request this rank posted and has not waited for",
                       .actual = "request " + std::to_string(request.id),
                       .hint = "Wait once for every request, on the rank that posted it"});
  }
  return found->second;
}

void MessageTable::close(int rank, Request request) {
  RankTable& state = ranks_[static_cast<std::size_t>(rank)];
  const auto found = state.open.find(request.id);
  // A send was counted when it was posted, so only receives are counted here.
  if (found->second.direction == Direction::receive) {
    state.traffic.received_bytes += static_cast<std::int64_t>(found->second.message->sent_bytes);
    ++state.traffic.received_messages;
  }
  state.open.erase(found);
}

// From now on nothing refers to buffers of this rank: they are about to be freed with its stack.
void MessageTable::end_rank(int rank) {
  RankTable& state = ranks_[static_cast<std::size_t>(rank)];
  state.ended = true;
  for (auto& [id, operation] : state.open) {
    PairedMessage& message = *operation.message;
    if (operation.direction == Direction::receive) {
      message.target = {};        // the message may still arrive; it is written nowhere
    } else if (!message.taken) {  // else the bytes are on their way, and arrive
      message.sender_left = true;
      message.source = {};
    }
  }
  state.open.clear();
  // Unpaired receives of this rank can never be matched, and a later send must not find them. Sends
  // stay: their receivers have to learn that the sender has left.
  std::erase_if(unpaired_, [rank](const auto& entry) {
    return entry.first.to == rank && entry.second.front()->receive_posted;
  });
}

std::optional<HalfMessage> MessageTable::other_tag(const HalfMessage& operation) const {
  const PairedMessage& mine = *operation.message;
  const bool wants_send = operation.direction == Direction::receive;
  MessagePtr other;
  for (const auto& [channel, queue] : unpaired_) {
    const bool is_there = channel.from == mine.from && channel.to == mine.to &&
                          channel.tag != mine.tag && queue.front()->send_posted == wants_send;
    if (is_there && (!other || channel.tag < other->tag)) other = queue.front();
  }
  if (mine.matched() || !other) return std::nullopt;
  return HalfMessage{wants_send ? Direction::send : Direction::receive, other};
}

std::string MessageTable::hopeless(const HalfMessage& operation, bool rendezvous) const {
  const PairedMessage& m = *operation.message;
  // Whatever became of the peer: the bytes are safe on their way.
  if (m.taken) return "";
  const std::string from = "rank " + std::to_string(m.from);
  const std::string to = "rank " + std::to_string(m.to);
  if (operation.direction == Direction::receive) {
    if (m.sender_left) return from + " ended without waiting for this send";
    if (!m.send_posted && ended(m.from)) return from + " had ended without sending it";
  } else if (rendezvous && !m.receive_posted && ended(m.to)) {  // else a send needs nobody
    return to + " had ended without receiving it";
  }
  return "";
}

}  // namespace ringlab::in_process
