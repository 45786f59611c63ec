// Pairs sends with receives, in order per (sender, receiver, tag), and knows what each rank left
// open. It moves no bytes and locks nothing: the network that owns it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab::in_process {

/// One send and the receive it is paired with, either of which may still be missing.
struct PairedMessage {
  int from = 0;
  int to = 0;
  int tag = 0;
  bool send_posted = false;
  bool receive_posted = false;
  bool taken = false;        ///< all bytes were read from `source`: the send is complete
  bool filled = false;       ///< `target` was dealt with: the receive is complete
  bool sender_left = false;  ///< the sender ended before the bytes were taken
  std::size_t sent_bytes = 0;
  std::span<const std::byte> source;  ///< the sender's buffer, until taken
  std::span<std::byte> target;        ///< the receiver's buffer
  std::vector<std::byte> payload;     ///< the bytes on their way, all or a piece
  std::size_t read_bytes = 0;         ///< of source, so far (threads)
  std::size_t written_bytes = 0;      ///< to target, so far (threads)
  bool matched() const { return send_posted && receive_posted; }
  bool fits() const { return target.size() == sent_bytes; }
};
using MessagePtr = std::shared_ptr<PairedMessage>;

enum class Direction { send, receive };

/// The side of a message that a request stands for.
struct HalfMessage {
  Direction direction = Direction::send;
  MessagePtr message;
};

/// "to receive tag 3 from rank 1"
std::string describe(const HalfMessage& operation);
/// The rank at the other side.
int peer_of(const HalfMessage& operation);

/// The ends of a message that is posted: by whom (`rank`), to or from whom (`peer`).
struct Address {
  int rank = 0;
  int peer = 0;
  int tag = 0;
};

class MessageTable {
 public:
  explicit MessageTable(int ranks);

  int ranks() const { return static_cast<int>(ranks_.size()); }

  /// Opens one side of a message; usage error for a peer that does not exist or a negative tag.
  /// The counterpart is the oldest unpaired side on the same channel, or comes later.
  struct PostedPair {
    Request request;
    MessagePtr message;
  };
  PostedPair post_send(const Address& address, std::span<const std::byte> bytes);
  PostedPair post_receive(const Address& address, std::span<std::byte> buffer);

  /// The operation of an open request; usage error when it is not this rank's or was waited for.
  HalfMessage find(int rank, Request request) const;
  /// Forgets a completed request and counts what it received.
  void close(int rank, Request request);

  /// Cancels what `rank` left open: its receives take nothing, its untaken sends are lost.
  void end_rank(int rank);
  bool ended(int rank) const { return ranks_[static_cast<std::size_t>(rank)].ended; }
  /// Why this operation can never complete although no rank failed; empty when it still may.
  /// With `rendezvous` a send needs its receive.
  std::string hopeless(const HalfMessage& operation, bool rendezvous) const;

  /// An operation of the peer for the same rank under another tag, unpaired as this one: that with
  /// the smallest tag.
  std::optional<HalfMessage> other_tag(const HalfMessage& operation) const;

  const Traffic& traffic(int rank) const { return ranks_[static_cast<std::size_t>(rank)].traffic; }

 private:
  struct Channel {
    int from = 0, to = 0, tag = 0;
    friend bool operator==(const Channel&, const Channel&) = default;
  };
  struct ChannelHash {
    std::size_t operator()(const Channel& channel) const;
  };
  struct RankTable {
    std::map<std::int64_t, HalfMessage> open;
    Traffic traffic;
    std::int64_t next_id = 0;
    bool ended = false;
  };

  void check(const Address& address, Direction direction) const;
  MessagePtr take_counterpart(const Channel& channel, Direction direction);
  Request open_request(int rank, HalfMessage operation);

  std::vector<RankTable> ranks_;
  /// Unpaired messages; those of one channel are all sends or all receives.
  std::unordered_map<Channel, std::list<MessagePtr>, ChannelHash> unpaired_;
};

}  // namespace ringlab::in_process
