// Who meets whom: which send of a rank is received by which receive of another.
#pragma once

#include <optional>
#include <vector>

#include "optimized/ring/messages/message_program.h"

namespace ringlab::ring {

/// One end of a message: which of all operations of its rank, and which of their ends.
struct MessagePlace {
  int rank = 0;
  std::size_t operation = 0;
  std::size_t end = 0;
  friend auto operator<=>(const MessagePlace&, const MessagePlace&) = default;
};

/// A send and its receive.
struct Meeting {
  MessagePlace send, receive;
};

struct Meetings {
  std::vector<Meeting> met;
  std::vector<MessagePlace> alone;  ///< ends that never meet another
};

/// Between two ranks the messages of a communicator meet in the order in which both issue them.
Meetings meetings_of(const std::vector<MessageProgram>& programs);

const MessageOperation& operation_at(const std::vector<MessageProgram>& programs,
                                     const MessagePlace& place);
const MessageEnd& end_at(const std::vector<MessageProgram>& programs, const MessagePlace& place);

/// A message as the copy that it amounts to.
StreamOperation copy_of(const std::vector<MessageProgram>& programs, const Meeting& meeting);
/// An attend or an add as the operation of a stream program.
StreamOperation computing_on_stream(int rank, const MessageOperation& operation);

}  // namespace ringlab::ring
