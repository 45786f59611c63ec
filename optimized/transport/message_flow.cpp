#include "optimized/transport/message_flow.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace ringlab {

bool is_open(const RecordedMessage& message, std::size_t at) {
  return message.at <= at && (message.waited == kNever || at < message.waited);
}

bool overlap(const NetworkCall& a, const NetworkCall& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

MessageFlow::MessageFlow(const std::vector<RankCalls>& ranks)
    : ranks_(ranks), sends_(ranks.size()), receives_(ranks.size()) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) collect(static_cast<int>(rank));
  pair_ends();
  std::size_t operations = 0;
  for (const auto& sends : sends_) operations += sends.size();
  for (auto& sends : sends_) {
    for (RecordedMessage& send : sends) send.owner = owner_of(send, operations);
  }
  for (auto& receives : receives_) {
    for (RecordedMessage& receive : receives) {
      if (receive.other_end) receive.owner = receive.other_end->owner;
    }
  }
}

void MessageFlow::collect(int rank) {
  const std::vector<NetworkCall>& calls = ranks_[index(rank)].calls;
  std::map<std::int64_t, std::size_t> waits;  // request → place
  for (std::size_t at = 0; at < calls.size(); ++at) {
    if (calls[at].kind == CallKind::wait && calls[at].returned) waits[calls[at].request] = at;
  }
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const NetworkCall& call = calls[at];
    if (call.kind != CallKind::send && call.kind != CallKind::receive) continue;
    const auto wait = waits.find(call.request);
    auto& operations = (call.kind == CallKind::send ? sends_ : receives_)[index(rank)];
    operations.push_back({.rank = rank,
                          .at = at,
                          .waited = wait == waits.end() ? kNever : wait->second,
                          .call = call});
  }
}

void MessageFlow::pair_ends() {
  std::map<std::tuple<int, int, int>, std::deque<RecordedMessage*>> sent;  // (from, to, tag)
  for (auto& sends : sends_) {
    for (RecordedMessage& send : sends) {
      sent[{send.rank, send.call.peer, send.call.tag}].push_back(&send);
    }
  }
  for (auto& receives : receives_) {
    for (RecordedMessage& receive : receives) {
      auto& queue = sent[{receive.call.peer, receive.rank, receive.call.tag}];
      if (queue.empty()) continue;
      receive.other_end = queue.front();
      queue.front()->other_end = &receive;
      queue.pop_front();
    }
  }
}

// Chunks without keys leave no trace in memory.
std::optional<int> MessageFlow::owner_of(const RecordedMessage& send, std::size_t depth) const {
  if (send.call.bytes == 0 || depth == 0) return std::nullopt;
  const auto& received = receives_[index(send.rank)];
  const RecordedMessage* last = nullptr;
  for (const RecordedMessage& receive : received) {
    // Memory of the forward pass may have gone and come again for another chunk.
    const bool is_of_this_pass = receive.call.backward == send.call.backward;
    if (is_of_this_pass && receive.at < send.at && overlap(receive.call, send.call)) {
      last = &receive;
    }
  }
  if (!last) return send.rank;
  if (!last->other_end) return std::nullopt;
  return owner_of(*last->other_end, depth - 1);
}

}  // namespace ringlab
