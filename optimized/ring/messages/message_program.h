// A message program: what one rank of a ring of processes puts on the streams of its device.
//
// Between processes a copy is a send of one rank and a receive of another. Messages that a rank
// sends and receives at the same time are one exchange: a group that is put on a stream as a whole,
// and ends when each of its messages has met its other end (NCCL: ncclSend and ncclRecv between
// ncclGroupStart and ncclGroupEnd). Chunks and sums each have a stream and a communicator.
//
// All exchanges have a round. Both ends of a message are in the same round, a rank issues its
// exchanges in the order of rounds, chunks before sums, each before all computing that it does not
// need, and work that an exchange waits for needs earlier rounds only: ranks thus cannot wait for
// each other in a circle, whether the communicators run side by side or in the order of issue. A
// rank waits for events of its own only.
//
// Proved by message_check.h, executed by random_order.h.
#pragma once

#include <string>
#include <vector>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

enum class MessageAction { attend, add_gradient, exchange, record, wait };
enum class MessageSide { send, receive };

/// One end of a message.
struct MessageEnd {
  MessageSide side = MessageSide::send;
  int peer = 0;
  int owner = 0;     ///< of the chunk, or of the sum
  int slot = kHome;  ///< where it is read or written; a gradient slot on the stream of sums
  friend bool operator==(const MessageEnd&, const MessageEnd&) = default;
};

struct MessageOperation {
  MessageAction action = MessageAction::attend;
  StreamKind stream = StreamKind::compute;
  int step = 0;                       ///< exchange: the round, from 1
  int owner = 0;                      ///< attend, add_gradient
  int slot = kHome;                   ///< attend
  int gradient = kHome;               ///< attend, add_gradient
  int addend = kHome;                 ///< add_gradient
  std::vector<MessageEnd> ends = {};  ///< exchange; those of one peer in the order of both ranks
  int event = kNoEvent;               ///< record, wait
  friend bool operator==(const MessageOperation&, const MessageOperation&) = default;
};

/// Each event is recorded once, before it is waited for.
struct MessageProgram {
  Pass pass = Pass::forward;
  int rank = 0;
  StreamRoom room = {};
  int events = 0;
  std::vector<MessageOperation> operations;  ///< in the order in which to issue them
};

/// The payload of the messages of an exchange.
inline Payload payload_of(const MessageOperation& exchange) {
  return exchange.stream == StreamKind::sums ? Payload::gradients : Payload::chunk;
}

/// The programs of all ranks. Chunks come to a rank in the order of its steps, one in a round; with
/// the bidirectional ring two, one from each side. Errors as make_stream_program().
std::vector<MessageProgram> make_message_programs(const Schedule& schedule);

/// Message programs from a stream program that obeys check_stream_program(), whoever copies in it.
/// At most `chunks_per_round` (at least 1) chunks come to a rank in a round.
/// O(operations · log operations).
std::vector<MessageProgram> make_message_programs(const StreamProgram& program,
                                                  int chunks_per_round);

/// "rank 2, round 3: exchange of chunks, send 1 to rank 3, receive 0 from rank 1".
std::string place(int rank, const MessageOperation& operation);

}  // namespace ringlab::ring
