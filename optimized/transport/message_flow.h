// Messages of a recorded run: the chunk that each carried, and when it was under way.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "optimized/transport/call_record.h"

namespace ringlab {

/// A send or a receive of a rank, and how long it was under way.
struct RecordedMessage {
  int rank = 0;
  std::size_t at = 0;      ///< its place among the calls of its rank
  std::size_t waited = 0;  ///< that of the wait that ended it; kNever
  NetworkCall call;
  const RecordedMessage* other_end = nullptr;  ///< the receive of a send, the send of a receive
  std::optional<int> owner = {};               ///< of the chunk that it carries
};
inline constexpr std::size_t kNever = static_cast<std::size_t>(-1);

/// True when call `at` of the rank is the message's post, or comes after it and before its wait.
bool is_open(const RecordedMessage& message, std::size_t at);
/// True when some byte is in both buffers.
bool overlap(const NetworkCall& a, const NetworkCall& b);

/// The operations of all ranks, sends and receives paired in the order of each channel. A buffer
/// holds the chunk that was last received into it, or else the rank's own.
class MessageFlow {
 public:
  explicit MessageFlow(const std::vector<RankCalls>& ranks);
  MessageFlow(const MessageFlow&) = delete;  // operations point at each other
  MessageFlow& operator=(const MessageFlow&) = delete;

  const std::vector<RankCalls>& ranks() const { return ranks_; }
  const std::vector<RecordedMessage>& sends(int rank) const { return sends_[index(rank)]; }
  const std::vector<RecordedMessage>& receives(int rank) const { return receives_[index(rank)]; }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void collect(int rank);
  void pair_ends();
  std::optional<int> owner_of(const RecordedMessage& send, std::size_t depth) const;

  const std::vector<RankCalls>& ranks_;
  std::vector<std::vector<RecordedMessage>> sends_, receives_;  // by rank, in program order
};

}  // namespace ringlab
