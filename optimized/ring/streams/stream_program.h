// A stream program: the schedule of all ranks as work on the streams of devices.
//
// Between ranks of one process a send and its receive are one copy, put on a stream once the source
// is written and the target is free. Each rank has three streams, which run side by side; work of
// one stream runs in order, and work of different streams is ordered by events: a `wait` holds its
// stream back until everything before the `record` of its event has ended. Nothing waits on the
// host, so one thread can issue the whole program, or capture it as a graph.
//
// Executed by cuda_streams.h on devices and by simulated_streams.h on a CPU, proved by
// stream_check.h. It knows nothing of CUDA, bytes or numbers.
#pragma once

#include <string>
#include <vector>

#include "reference/core/schedule/schedule.h"

namespace ringlab::ring {

/// Copies of K and V must not queue behind copies of gradients, which wait for more.
enum class StreamKind { compute, chunks, sums };
inline constexpr int kStreamsPerRank = 3;

/// attend: this rank's queries against the chunk in `slot`; backward, its dK and dV go to
/// `gradient`. copy: `from` to `to`. add_gradient: `gradient` += `addend`. delay: the stream stands
/// still for a while.
enum class StreamAction { attend, copy, add_gradient, record, wait, delay };

/// The rank on whose streams copies are put.
enum class CopyBy { receiver, sender };

/// A slot of a rank; kHome is its own chunk, or the own sum.
struct SlotPlace {
  int rank = 0;
  int slot = kHome;
  friend auto operator<=>(const SlotPlace&, const SlotPlace&) = default;
};

inline constexpr int kNoEvent = -1;

struct StreamOperation {
  StreamAction action = StreamAction::attend;
  int rank = 0;  ///< whose stream it is put on
  StreamKind stream = StreamKind::compute;
  int step = 0;                      ///< of the rank that computes or receives
  int owner = 0;                     ///< of the chunk concerned
  int slot = kHome;                  ///< attend: where K and V lie
  int gradient = kHome;              ///< attend, add_gradient
  int addend = kHome;                ///< add_gradient
  Payload payload = Payload::chunk;  ///< copy
  SlotPlace from = {};               ///< copy
  SlotPlace to = {};                 ///< copy
  int from_step = 0;                 ///< copy: of the rank that sends
  int event = kNoEvent;              ///< record, wait
  std::int64_t delay_ns = 0;         ///< delay
  friend bool operator==(const StreamOperation&, const StreamOperation&) = default;
};

/// Slots that a rank needs.
struct StreamRoom {
  int slots = 0;
  int gradient_slots = 0;
  friend bool operator==(const StreamRoom&, const StreamRoom&) = default;
};

/// Every event is recorded once, before any wait for it.
struct StreamProgram {
  Pass pass = Pass::forward;
  std::vector<StreamRoom> ranks;
  int events = 0;
  std::vector<StreamOperation> operations;  ///< of all streams, in the order in which to issue them
};

/// Makes the program of all ranks, which advance side by side, with needed waits only.
/// The schedule must obey check_schedule(); a usage error when it cannot be executed to its end.
/// O(operations · (streams + log operations)).
StreamProgram make_stream_program(const Schedule& schedule, CopyBy copy_by);

/// The number of a stream among those of all ranks.
inline int stream_number(int rank, StreamKind kind) {
  return rank * kStreamsPerRank + static_cast<int>(kind);
}
inline int stream_number(const StreamOperation& operation) {
  return stream_number(operation.rank, operation.stream);
}

/// True where the operation reads or writes slots, rather than order others or wait.
inline bool touches_slots(const StreamOperation& operation) {
  return operation.action == StreamAction::attend || operation.action == StreamAction::copy ||
         operation.action == StreamAction::add_gradient;
}

/// "rank 2, step 3, copy of chunk 1 from rank 1 slot 0 to rank 2 slot 1".
std::string place(const StreamOperation& operation);

/// `program` with a delay of 0 … `longest_ns`, drawn from `seed`, before every wait, and before and
/// after every operation on a slot: operations that wait for it wait for the delay, too.
StreamProgram with_delays(const StreamProgram& program, std::uint64_t seed,
                          std::int64_t longest_ns);

}  // namespace ringlab::ring
