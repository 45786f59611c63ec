#include "optimized/ring/messages/message_program.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "optimized/ring/streams/stream_accesses.h"
#include "optimized/ring/streams/stream_waits.h"

namespace ringlab::ring {
namespace {

bool is_copy(const StreamOperation& operation) { return operation.action == StreamAction::copy; }

/// An operation on slots.
struct MessageWork {
  StreamOperation operation;
  int round = 0;  ///< computing: the last one that it needs
  /// Earlier works that must have ended, as (rank, number): both works touch a slot of that rank.
  std::vector<std::pair<int, std::size_t>> after = {};

  bool concerns(int rank) const {
    if (!is_copy(operation)) return operation.rank == rank;
    return operation.from.rank == rank || operation.to.rank == rank;
  }
};

/// Gives every copy the first round that comes after all works that it needs.
class CopyRounds {
 public:
  CopyRounds(const StreamProgram& program, int chunks_per_round)
      : program_(program),
        chunks_per_round_(chunks_per_round),
        computed_(program.ranks.size()),
        received_(program.ranks.size()) {}

  // One pass is enough: in a stream program every operation stands behind all that it needs.
  std::vector<MessageWork> run() {
    for (const StreamOperation& operation : program_.operations) {
      if (touches_slots(operation)) take_in(operation);
    }
    return std::move(works_);
  }

 private:
  /// The last round in which chunks come to a rank, and how many.
  struct Received {
    int round = 0;
    int chunks = 0;
  };

  void take_in(const StreamOperation& operation) {
    MessageWork work{operation};
    for (const Access& access : accesses_of(operation, program_.pass)) {
      uses_.use(access, works_.size(),
                [&](std::size_t earlier) { work.after.emplace_back(access.place.rank, earlier); });
    }
    // The last round of the works that it needs, on either side: a copy touches slots of two ranks.
    for (const auto& [rank, number] : work.after) {
      work.round = std::max(work.round, works_[number].round);
    }
    // A copy must be in a later round than the works that it waits for;
    // computing is in no round of its own.
    work.round = is_copy(operation) ? round_of_copy(operation, work.round + 1)
                                    : round_of_computing(operation, work.round);
    works_.push_back(std::move(work));
  }

  int round_of_copy(const StreamOperation& copy, int first) {
    // Sums are not limited: sums that are ready together share a round.
    if (copy.payload == Payload::gradients) return first;
    // Never before the last chunk that came: chunks come in the order of the rank's steps.
    Received& last = received_[static_cast<std::size_t>(copy.to.rank)];
    const bool is_full = last.chunks == chunks_per_round_;
    const int round = std::max(first, last.round + (is_full ? 1 : 0));
    last = {.round = round, .chunks = round == last.round ? last.chunks + 1 : 1};
    return round;
  }

  /// The last round that computing needs.
  /// A rank computes in order, so later computing also needs the rounds of earlier computing.
  int round_of_computing(const StreamOperation& operation, int first) {
    int& last = computed_[static_cast<std::size_t>(operation.rank)];
    return last = std::max(last, first);
  }

  const StreamProgram& program_;
  const int chunks_per_round_;
  std::vector<int> computed_;
  std::vector<Received> received_;
  SlotUses uses_;
  std::vector<MessageWork> works_;
};

MessageOperation as_computing(const StreamOperation& o) {
  return {.action = o.action == StreamAction::attend ? MessageAction::attend
                                                     : MessageAction::add_gradient,
          .step = o.step,
          .owner = o.owner,
          .slot = o.slot,
          .gradient = o.gradient,
          .addend = o.addend};
}

StreamKind stream_of(const StreamOperation& operation) {
  if (!is_copy(operation)) return StreamKind::compute;
  return operation.payload == Payload::chunk ? StreamKind::chunks : StreamKind::sums;
}

MessageEnd end_of_copy(const StreamOperation& copy, MessageSide side) {
  const bool sends = side == MessageSide::send;
  return {.side = side,
          .peer = sends ? copy.to.rank : copy.from.rank,
          .owner = copy.owner,
          .slot = sends ? copy.from.slot : copy.to.slot};
}

/// The operations of one rank on slots, copies of a round together, and the works they wait for.
class RankWorks {
 public:
  RankWorks(const std::vector<MessageWork>& works, int rank) : works_(works), rank_(rank) {
    for (const std::size_t number : in_order()) add(number);
  }
  const std::vector<MessageOperation>& operations() const { return operations_; }
  const std::vector<StreamWork>& on_streams() const { return on_streams_; }

 private:
  using Numbers = std::vector<std::size_t>;

  /// Copies in rounds, in a round chunks before sums; between them the computing, but no sooner
  /// than copies need it. A kernel that stays on all multiprocessors would hold up messages that
  /// were issued after it.
  Numbers in_order() const {
    const Numbers copies = copies_in_rounds();
    const Numbers computed =
        those([](const StreamOperation& operation) { return !is_copy(operation); });
    Numbers order;
    std::vector<bool> is_issued(works_.size());
    const auto issue = [&](std::size_t number) {
      order.push_back(number);
      is_issued[number] = true;
    };
    auto next = computed.begin();
    for (auto first = copies.begin(); first != copies.end();) {
      // Issues the copies of one exchange at a time, after just as much computing as they need. The
      // loop ends, as all works that a copy needs stand before it in the list.
      const auto end = end_of_exchange(first, copies.end());
      while (!std::all_of(first, end,
                          [&](auto copy) { return needs_nothing_else(copy, is_issued); })) {
        issue(*next++);
      }
      std::for_each(first, end, issue);
      first = end;
    }
    std::for_each(next, computed.end(), issue);
    return order;
  }

  template <class Predicate>
  Numbers those(Predicate predicate) const {
    Numbers numbers;
    for (std::size_t i = 0; i < works_.size(); ++i) {
      if (works_[i].concerns(rank_) && predicate(works_[i].operation)) numbers.push_back(i);
    }
    return numbers;
  }
  std::tuple<int, StreamKind> exchange_of(std::size_t copy) const {
    return {works_[copy].round, stream_of(works_[copy].operation)};
  }
  Numbers copies_in_rounds() const {
    Numbers numbers = those([](const StreamOperation& operation) { return is_copy(operation); });
    // The sort is stable: two messages of one pair of ranks in a round keep the order of the list,
    // which both ends see; NCCL matches them by order.
    std::ranges::stable_sort(numbers, {}, [&](std::size_t copy) { return exchange_of(copy); });
    return numbers;
  }
  template <class Iterator>
  Iterator end_of_exchange(Iterator first, Iterator end) const {
    return std::find_if(first, end,
                        [&](std::size_t copy) { return exchange_of(copy) != exchange_of(*first); });
  }
  bool needs_nothing_else(std::size_t number, const std::vector<bool>& is_issued) const {
    // Needs of the other rank do not count: its own stream waits for them, and so does the message.
    return std::ranges::all_of(works_[number].after, [&](const auto& earlier) {
      return earlier.first != rank_ || is_issued[earlier.second];
    });
  }

  void add(std::size_t number) {
    const MessageWork& work = works_[number];
    if (!is_copy(work.operation)) {
      begin(as_computing(work.operation));
    } else {
      add_copy(work);
    }
    // An exchange of several copies waits for everything that any of the copies needs.
    for (const auto& [rank, earlier] : work.after) {
      if (rank == rank_) on_streams_.back().after.push_back(at_.at(earlier));
    }
    at_[number] = operations_.size() - 1;
  }

  void add_copy(const MessageWork& work) {
    const StreamKind stream = stream_of(work.operation);
    const bool joins = !operations_.empty() && operations_.back().stream == stream &&
                       operations_.back().step == work.round;
    if (!joins) {
      begin({.action = MessageAction::exchange, .stream = stream, .step = work.round});
    }
    const bool sends = work.operation.from.rank == rank_;
    operations_.back().ends.push_back(
        end_of_copy(work.operation, sends ? MessageSide::send : MessageSide::receive));
  }

  void begin(MessageOperation operation) {
    on_streams_.push_back({.stream = static_cast<int>(operation.stream)});
    operations_.push_back(std::move(operation));
  }

  const std::vector<MessageWork>& works_;
  const int rank_;
  std::vector<MessageOperation> operations_;
  std::vector<StreamWork> on_streams_;
  std::map<std::size_t, std::size_t> at_;  // operations of works, by number
};

MessageOperation on_stream_of(const MessageOperation& operation, MessageAction action, int event) {
  return {.action = action, .stream = operation.stream, .step = operation.step, .event = event};
}

/// The program of a rank, with events recorded just behind the operations that others wait for.
MessageProgram write_program(const RankWorks& works, Pass pass, int rank, const StreamRoom& room) {
  MessageProgram program{.pass = pass, .rank = rank, .room = room, .operations = {}};
  const auto waits = needed_waits(works.on_streams(), kStreamsPerRank);
  std::vector<int> event_of(waits.size(), kNoEvent);
  // Marks the operations at first; the record, which is before every wait, sets the number.
  for (const auto& others : waits) {
    for (const std::size_t other : others) event_of[other] = 0;
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const MessageOperation& operation = works.operations()[i];
    for (const std::size_t other : waits[i]) {
      program.operations.push_back(on_stream_of(operation, MessageAction::wait, event_of[other]));
    }
    program.operations.push_back(operation);
    if (event_of[i] == kNoEvent) continue;
    event_of[i] = program.events++;
    program.operations.push_back(on_stream_of(operation, MessageAction::record, event_of[i]));
  }
  return program;
}

std::string text_of(const MessageEnd& end) {
  const bool sends = end.side == MessageSide::send;
  return (sends ? ", send " : ", receive ") + std::to_string(end.owner) +
         (sends ? " to rank " : " from rank ") + std::to_string(end.peer);
}

}  // namespace

std::vector<MessageProgram> make_message_programs(const StreamProgram& program,
                                                  int chunks_per_round) {
  const std::vector<MessageWork> works = CopyRounds(program, chunks_per_round).run();
  std::vector<MessageProgram> programs;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    programs.push_back(write_program(RankWorks(works, rank), program.pass, rank,
                                     program.ranks[static_cast<std::size_t>(rank)]));
  }
  return programs;
}

std::vector<MessageProgram> make_message_programs(const Schedule& schedule) {
  const bool both_sides = schedule_traits(schedule.spec.kind).both_sides;
  // One chunk from each side: with one chunk in all, half of the links would rest in every round.
  return make_message_programs(make_stream_program(schedule, CopyBy::receiver), both_sides ? 2 : 1);
}

std::string place(int rank, const MessageOperation& operation) {
  std::string text = "rank " + std::to_string(rank);
  text += operation.action == MessageAction::exchange ? ", round " : ", step ";
  text += std::to_string(operation.step);
  switch (operation.action) {
    case MessageAction::attend:
      return text + ": attend to chunk " + std::to_string(operation.owner);
    case MessageAction::add_gradient:
      return text + ": add for chunk " + std::to_string(operation.owner);
    case MessageAction::exchange:
      text +=
          payload_of(operation) == Payload::chunk ? ": exchange of chunks" : ": exchange of sums";
      for (const MessageEnd& end : operation.ends) text += text_of(end);
      return text;
    case MessageAction::record:
      return text + ": record event " + std::to_string(operation.event);
    case MessageAction::wait:
      return text + ": wait for event " + std::to_string(operation.event);
  }
  return text;
}

}  // namespace ringlab::ring
