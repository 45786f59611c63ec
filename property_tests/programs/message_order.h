// Message programs of all ranks as one order: the ends that meet, and when messages happen.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "optimized/ring/messages/message_program.h"
#include "property_tests/programs/random_order.h"

namespace ringlab::ring {

/// One end of a message: its rank, its operation there, and its number among that one's ends.
struct MessagePlace {
  int rank = 0;
  std::size_t operation = 0;
  std::size_t end = 0;
  friend auto operator<=>(const MessagePlace&, const MessagePlace&) = default;
};

/// A send and its receive, as the copy that they amount to.
struct Meeting {
  MessagePlace send, receive;
  StreamOperation copy = {};
};

/// Lanes of operations. Besides records that it waits for, an operation comes after all earlier
/// ones of its rank, or of its stream.
enum class Lanes { ranks, streams };

/// Messages happen when the exchanges of both ends have begun; an exchange ends when its messages
/// have. Between two ranks the messages of a communicator meet in the order in which both issue
/// them; ends that meet no other keep their exchange from ending.
class MessageOrder {
 public:
  MessageOrder(const std::vector<MessageProgram>& programs, Lanes lanes);
  MessageOrder(const MessageOrder&) = delete;

  const Happenings& happenings() const { return happenings_; }
  /// All ends, whether they meet another or not.
  const std::vector<MessagePlace>& ends() const { return ends_; }
  /// The point at which an end's exchange begins.
  std::size_t begin_of(const MessagePlace& end) const {
    return begins_[static_cast<std::size_t>(end.rank)][end.operation];
  }
  /// The message that has arrived at a point, if any.
  const Meeting* arrived_at(std::size_t point) const;
  const MessageOperation& operation(const MessagePlace& place) const;
  const MessageEnd& end(const MessagePlace& place) const {
    return operation(place).ends[place.end];
  }

 private:
  void add(const MessageProgram& program, Lanes lanes);
  void meet_in_order();
  void meet(const MessagePlace& send, const MessagePlace& receive);

  const std::vector<MessageProgram>& programs_;
  Happenings happenings_;
  std::vector<MessagePlace> ends_;
  std::deque<Meeting> meetings_;
  std::deque<StreamOperation> computing_;
  std::vector<std::vector<std::size_t>> begins_;  // points, by rank and operation
  std::size_t first_message_ = 0;                 // the point at which the first one begins
};

/// True of attends and adds.
bool is_computed(const MessageOperation& operation);
/// An attend or an add as an operation of a stream program.
StreamOperation computing_on_stream(int rank, const MessageOperation& operation);

}  // namespace ringlab::ring
