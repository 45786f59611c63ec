#include "optimized/ring/streams/stream_program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "optimized/ring/streams/stream_accesses.h"
#include "optimized/ring/streams/stream_waits.h"
#include "reference/core/error.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::ring {
namespace {

/// An operation on slots and the operations, by number, that must have ended before it begins.
struct SlotWork {
  StreamOperation operation;
  std::vector<std::size_t> after = {};
};

/// The two ends of a message, as far as they are posted.
struct BothEnds {
  std::optional<Operation> send, receive;
  bool is_ready() const { return send && receive; }
};

/// Executes the schedule without time: a copy is made as soon as both of its ends were posted.
/// Chunks are copied to a rank in the order of its steps, so that none queues behind a later chunk
/// that waits for more.
class Translation {
 public:
  Translation(const Schedule& schedule, CopyBy copy_by)
      : schedule_(schedule),
        copy_by_(copy_by),
        at_(schedule.ranks.size()),
        due_(schedule.ranks.size()) {}

  std::vector<SlotWork> run() {
    // Ranks go on in turn as long as any can. Only when all stand still a copy is taken out of
    // turn; when there is none either, the schedule has no end.
    while (advance_all() || copy_out_of_order()) {
    }
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      if (at_[rank] < schedule_.ranks[rank].operations.size()) refuse();
    }
    return std::move(works_);
  }

 private:
  [[noreturn]] static void refuse() {
    throw_usage_error({.where = "stream program",
                       .expected = "a schedule that obeys check_schedule()",
                       .actual = "one that cannot be executed to its end"});
  }

  bool advance_all() {
    bool advanced = false;
    for (int rank = 0; rank < static_cast<int>(at_.size()); ++rank) {
      advanced = step(rank) || advanced;
    }
    return advanced;
  }

  bool step(int rank) {
    const auto& operations = schedule_.ranks[static_cast<std::size_t>(rank)].operations;
    std::size_t& at = at_[static_cast<std::size_t>(rank)];
    if (at == operations.size() || !execute(rank, operations[at])) return false;
    ++at;
    return true;
  }

  /// Executes an operation of a rank; false when it cannot go on yet.
  bool execute(int rank, const Operation& operation) {
    switch (operation.verb) {
      case Verb::post_receive:
      case Verb::post_send:
        post(rank, operation);
        return true;
      // Waits are not translated: they only hold this rank back here, and so fix in which order
      // works are listed. The works that each work waits for follow from slots (add_work).
      case Verb::wait_receive:
      case Verb::wait_send:
        return copied_.contains(message_of(rank, operation));
      case Verb::compute:
        attend(rank, operation);
        return true;
      case Verb::add:
        add(rank, operation);
        return true;
    }
    return false;
  }

  void post(int rank, const Operation& operation) {
    const MessageKey message = message_of(rank, operation);
    BothEnds& posted = posted_[message];
    const bool sends = is_send(operation);
    (sends ? posted.send : posted.receive) = operation;
    const bool chunk = message.payload == Payload::chunk;
    // Chunks come in the order in which their receives are posted, which is
    // the order of the rank's steps.
    if (chunk && !sends) due_[static_cast<std::size_t>(rank)].push_back(message);
    // Sums have no such order: each is copied as soon as both of its ends are there.
    if (!chunk && posted.is_ready()) copy(message, posted);
    if (chunk) copy_in_order(message.to);
  }

  /// Copies the chunks that are next for `rank`, as long as they are ready.
  void copy_in_order(int rank) {
    std::deque<MessageKey>& due = due_[static_cast<std::size_t>(rank)];
    // `due` holds receives that are posted, so there is an entry for each of them.
    while (!due.empty() && posted_.at(due.front()).is_ready()) {
      const MessageKey message = due.front();
      due.pop_front();
      // A message may have been copied out of turn already.
      if (!copied_.contains(message)) copy(message, posted_.at(message));
    }
  }

  /// Copies a message that is ready, out of turn, for schedules that need it.
  bool copy_out_of_order() {
    for (const auto& [message, posted] : posted_) {
      if (!posted.is_ready() || copied_.contains(message)) continue;
      copy(message, posted);
      return true;
    }
    return false;
  }

  void copy(const MessageKey& message, const BothEnds& posted) {
    const Operation& send = *posted.send;
    const Operation& receive = *posted.receive;
    copied_.insert(message);
    const bool chunk = message.payload == Payload::chunk;
    add_work({.action = StreamAction::copy,
              // The receiver's stream waits for its own slot, which it knows best;
              // CopyBy::sender is for tests.
              .rank = copy_by_ == CopyBy::receiver ? message.to : message.from,
              .stream = chunk ? StreamKind::chunks : StreamKind::sums,
              .step = receive.step,
              .owner = message.owner,
              .payload = message.payload,
              .from = {message.from, slot_of(send)},
              .to = {message.to, slot_of(receive)},
              .from_step = send.step});
  }

  void attend(int rank, const Operation& operation) {
    add_work({.action = StreamAction::attend,
              .rank = rank,
              .step = operation.step,
              .owner = operation.owner,
              .slot = operation.slot,
              .gradient = operation.gradient});
  }

  void add(int rank, const Operation& operation) {
    add_work({.action = StreamAction::add_gradient,
              .rank = rank,
              .step = operation.step,
              .owner = operation.owner,
              .gradient = operation.gradient,
              .addend = operation.addend});
  }

  void add_work(const StreamOperation& operation) {
    // Dependencies come from slots alone: the last writer, and for a write also later readers.
    SlotWork work{operation};
    for (const Access& access : accesses_of(operation, schedule_.pass)) {
      uses_.use(access, works_.size(), [&](std::size_t earlier) { work.after.push_back(earlier); });
    }
    works_.push_back(std::move(work));
  }

  const Schedule& schedule_;
  CopyBy copy_by_;
  std::vector<std::size_t> at_;  // next operation of each rank
  std::map<MessageKey, BothEnds> posted_;
  std::vector<std::deque<MessageKey>> due_;  // per rank, chunks that it is to receive, in its order
  std::set<MessageKey> copied_;
  SlotUses uses_;
  std::vector<SlotWork> works_;
};

std::vector<StreamWork> on_streams(const std::vector<SlotWork>& works) {
  std::vector<StreamWork> placed;
  for (const SlotWork& work : works) placed.push_back({stream_number(work.operation), work.after});
  return placed;
}

StreamOperation on_stream_of(const StreamOperation& operation, StreamAction action) {
  return {.action = action,
          .rank = operation.rank,
          .stream = operation.stream,
          .step = operation.step,
          .owner = operation.owner};
}

/// Writes operations and waits, with events for the awaited operations, recorded just after them.
void write_operations(const std::vector<SlotWork>& works, StreamProgram& program) {
  // Leaves out waits that the order in a stream or an earlier wait implies (needed_waits).
  const int streams = static_cast<int>(program.ranks.size()) * kStreamsPerRank;
  const auto waits = needed_waits(on_streams(works), streams);
  std::vector<bool> is_waited_for(works.size());
  for (const auto& others : waits) {
    for (const std::size_t other : others) is_waited_for[other] = true;
  }
  std::vector<int> event_of(works.size(), kNoEvent);
  for (std::size_t i = 0; i < works.size(); ++i) {
    // Works only depend on earlier ones, so every event waited for here has its number already.
    for (const std::size_t other : waits[i]) {
      StreamOperation wait = on_stream_of(works[i].operation, StreamAction::wait);
      wait.event = event_of[other];
      program.operations.push_back(wait);
    }
    program.operations.push_back(works[i].operation);
    if (!is_waited_for[i]) continue;
    StreamOperation record = on_stream_of(works[i].operation, StreamAction::record);
    record.event = event_of[i] = program.events++;
    program.operations.push_back(record);
  }
}

}  // namespace

StreamProgram make_stream_program(const Schedule& schedule, CopyBy copy_by) {
  StreamProgram program{.pass = schedule.pass, .ranks = {}, .events = 0, .operations = {}};
  for (const RankSchedule& rank : schedule.ranks) {
    program.ranks.push_back({.slots = rank.slots, .gradient_slots = rank.gradient_slots});
  }
  write_operations(Translation(schedule, copy_by).run(), program);
  return program;
}

}  // namespace ringlab::ring
