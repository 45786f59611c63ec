#include "optimized/ring/streams/stream_program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "optimized/ring/streams/stream_waits.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

/// An operation on slots and the operations, by number, that must have ended before it begins.
struct SlotWork {
  StreamOperation operation;
  std::vector<std::size_t> after = {};
};

/// Who wrote and read every slot last, so that the next one knows whom to wait for.
class SlotUses {
 public:
  void read(Held held, SlotPlace place, std::size_t reader, SlotWork& work) {
    Use& use = uses_[{held, place}];
    if (use.written) work.after.push_back(use.writer);
    use.readers.push_back(reader);
  }
  void write(Held held, SlotPlace place, std::size_t writer, SlotWork& work) {
    Use& use = uses_[{held, place}];
    if (use.written) work.after.push_back(use.writer);
    work.after.insert(work.after.end(), use.readers.begin(), use.readers.end());
    use = {.written = true, .writer = writer, .readers = {}};
  }

 private:
  struct Use {
    bool written = false;
    std::size_t writer = 0;
    std::vector<std::size_t> readers = {};
  };
  std::map<std::pair<Held, SlotPlace>, Use> uses_;
};

/// What tells the messages of a pass apart.
struct Message {
  int from = 0;
  int to = 0;
  int owner = 0;
  Held held = Held::chunk;
  friend auto operator<=>(const Message&, const Message&) = default;
};

/// The two ends of a message, as far as they are posted.
struct BothEnds {
  std::optional<Operation> send, receive;
  bool is_ready() const { return send && receive; }
};

bool is_send(Action action) {
  return action == Action::post_send || action == Action::wait_send ||
         action == Action::post_send_gradient || action == Action::wait_send_gradient;
}
Held held_of(Action action) {
  return action == Action::post_send || action == Action::wait_send ||
                 action == Action::post_receive || action == Action::wait_receive
             ? Held::chunk
             : Held::sum;
}
Message message_of(int rank, const Operation& operation) {
  const bool sends = is_send(operation.action);
  return {.from = sends ? rank : operation.peer,
          .to = sends ? operation.peer : rank,
          .owner = operation.owner,
          .held = held_of(operation.action)};
}

/// Executes the schedule without time: a copy is there as soon as both of its ends were posted.
/// Chunks are copied to a rank in the order of its steps, so that none queues behind a later one
/// that waits for more.
class Translation {
 public:
  Translation(const Schedule& schedule, CopyBy copy_by)
      : schedule_(schedule),
        copy_by_(copy_by),
        at_(schedule.ranks.size()),
        due_(schedule.ranks.size()) {}

  std::vector<SlotWork> run() {
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
                       .actual = "one that cannot be executed to its end",
                       .hint = ""});
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

  /// False: not yet.
  bool execute(int rank, const Operation& operation) {
    switch (operation.action) {
      case Action::post_receive:
      case Action::post_receive_gradient:
      case Action::post_send:
      case Action::post_send_gradient:
        post(rank, operation);
        return true;
      case Action::wait_receive:
      case Action::wait_receive_gradient:
      case Action::wait_send:
      case Action::wait_send_gradient:
        return copied_.contains(message_of(rank, operation));
      case Action::compute:
        attend(rank, operation);
        return true;
      case Action::add_gradient:
        add(rank, operation);
        return true;
    }
    return false;
  }

  void post(int rank, const Operation& operation) {
    const Message message = message_of(rank, operation);
    BothEnds& posted = posted_[message];
    const bool sends = is_send(operation.action);
    (sends ? posted.send : posted.receive) = operation;
    const bool chunk = message.held == Held::chunk;
    if (chunk && !sends) due_[static_cast<std::size_t>(rank)].push_back(message);
    if (!chunk && posted.is_ready()) copy(message, posted);
    if (chunk) copy_in_order(message.to);
  }

  /// All that comes next to `rank` and is there to be copied.
  void copy_in_order(int rank) {
    std::deque<Message>& due = due_[static_cast<std::size_t>(rank)];
    while (!due.empty() && posted_.at(due.front()).is_ready()) {
      const Message message = due.front();
      due.pop_front();
      if (!copied_.contains(message)) copy(message, posted_.at(message));
    }
  }

  /// Copies a message that is ready, out of turn, for schedules that want it so.
  bool copy_out_of_order() {
    for (const auto& [message, posted] : posted_) {
      if (!posted.is_ready() || copied_.contains(message)) continue;
      copy(message, posted);
      return true;
    }
    return false;
  }

  void copy(const Message& message, const BothEnds& posted) {
    const Operation& send = *posted.send;
    const Operation& receive = *posted.receive;
    copied_.insert(message);
    const bool chunk = message.held == Held::chunk;
    const SlotPlace from{message.from, chunk ? send.slot : send.gradient};
    const SlotPlace to{message.to, chunk ? receive.slot : receive.gradient};
    SlotWork work{{.action = StreamAction::copy,
                   .rank = copy_by_ == CopyBy::receiver ? message.to : message.from,
                   .stream = chunk ? StreamKind::chunks : StreamKind::sums,
                   .step = receive.step,
                   .owner = message.owner,
                   .held = message.held,
                   .from = from,
                   .to = to,
                   .from_step = send.step}};
    uses_.read(message.held, from, works_.size(), work);
    uses_.write(message.held, to, works_.size(), work);
    works_.push_back(std::move(work));
  }

  void attend(int rank, const Operation& operation) {
    SlotWork work{{.action = StreamAction::attend,
                   .rank = rank,
                   .step = operation.step,
                   .owner = operation.owner,
                   .slot = operation.slot,
                   .gradient = operation.gradient}};
    uses_.read(Held::chunk, {rank, operation.slot}, works_.size(), work);
    if (schedule_.pass == Pass::backward) {
      uses_.write(Held::sum, {rank, operation.gradient}, works_.size(), work);
    }
    works_.push_back(std::move(work));
  }

  void add(int rank, const Operation& operation) {
    SlotWork work{{.action = StreamAction::add_gradient,
                   .rank = rank,
                   .step = operation.step,
                   .owner = operation.owner,
                   .gradient = operation.gradient,
                   .addend = operation.addend}};
    uses_.read(Held::sum, {rank, operation.addend}, works_.size(), work);
    uses_.write(Held::sum, {rank, operation.gradient}, works_.size(), work);
    works_.push_back(std::move(work));
  }

  const Schedule& schedule_;
  CopyBy copy_by_;
  std::vector<std::size_t> at_;  // next operation of each rank
  std::map<Message, BothEnds> posted_;
  std::vector<std::deque<Message>> due_;  // per rank, chunks that it is to receive, in its order
  std::set<Message> copied_;
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

/// Events for the operations that are waited for, recorded just after them.
void write_operations(const std::vector<SlotWork>& works, StreamProgram& program) {
  const int streams = static_cast<int>(program.ranks.size()) * kStreamsPerRank;
  const auto waits = needed_waits(on_streams(works), streams);
  std::vector<bool> is_waited_for(works.size());
  for (const auto& others : waits) {
    for (const std::size_t other : others) is_waited_for[other] = true;
  }
  std::vector<int> event_of(works.size(), kNoEvent);
  for (std::size_t i = 0; i < works.size(); ++i) {
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
