#include "property_tests/programs/random_messages.h"

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

/// One stream of one rank: numbers of its operations among those of the rank.
struct Stream {
  std::vector<std::size_t> numbers = {};
  std::size_t at = 0;
  bool began = false;         ///< the exchange at its front
  std::size_t ends_left = 0;  ///< of its messages
  std::uint64_t weight = 1;
};

/// A send and its receive: streams, and operations on them.
struct Meeting {
  StreamOperation copy;
  std::size_t from_stream = 0, from_at = 0;
  std::size_t to_stream = 0, to_at = 0;
  enum class State { ahead, under_way, over } state = State::ahead;
};

/// What a rank has posted and its peer has not met yet.
struct Posted {
  MessageEnd end;
  std::size_t stream = 0;
  std::size_t at = 0;
};

std::size_t stream_at(int rank, StreamKind kind) {
  return static_cast<std::size_t>(stream_number(rank, kind));
}

class RandomMessages {
 public:
  RandomMessages(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                 StreamMachine& machine)
      : programs_(programs),
        machine_(machine),
        random_(seed),
        streams_(programs.size() * kStreamsPerRank) {
    for (const MessageProgram& program : programs) take_in(program);
    for (Stream& stream : streams_) stream.weight = std::uint64_t{1} << (random_() % 9);
  }

  void run() {
    while (const std::uint64_t total = total_weight()) {
      std::uint64_t drawn = random_() % total;
      for_each_move([&](std::uint64_t weight, auto move) {
        if (drawn >= weight) {
          drawn -= weight;
          return false;
        }
        move();
        return true;
      });
    }
    for (const Stream& stream : streams_) {
      if (stream.at < stream.numbers.size()) refuse();
    }
  }

 private:
  [[noreturn]] static void refuse() {
    throw_usage_error({.where = "message programs",
                       .expected = "programs that obey check_message_programs()",
                       .actual = "ranks that wait for ever",
                       .hint = ""});
  }

  void take_in(const MessageProgram& program) {
    std::vector<std::optional<std::size_t>> last(static_cast<std::size_t>(program.events));
    std::vector<std::optional<std::size_t>>& records = records_.emplace_back();
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const MessageOperation& operation = program.operations[i];
      Stream& stream = streams_[stream_at(program.rank, operation.stream)];
      if (operation.action == MessageAction::exchange) post(program.rank, operation, stream);
      stream.numbers.push_back(i);
      records.emplace_back();
      if (operation.event == kNoEvent) continue;
      auto& record = last[static_cast<std::size_t>(operation.event)];
      if (operation.action == MessageAction::record) record = i;
      if (operation.action == MessageAction::wait) records.back() = record;
    }
    ended_.emplace_back(program.operations.size());
  }

  /// Each end meets the first one that fits and has not met another.
  void post(int rank, const MessageOperation& exchange, const Stream& stream) {
    for (const MessageEnd& end : exchange.ends) {
      const bool sends = end.side == MessageSide::send;
      const std::pair<int, int> way = sends ? std::pair(rank, end.peer) : std::pair(end.peer, rank);
      const auto line = std::tuple(way.first, way.second, exchange.stream);
      const Posted mine{end, stream_at(rank, exchange.stream), stream.numbers.size()};
      std::deque<Posted>& theirs = posted_[{line, !sends}];
      if (theirs.empty()) {
        posted_[{line, sends}].push_back(mine);
        continue;
      }
      const Posted first = theirs.front();
      theirs.pop_front();
      add_meeting(exchange, way, sends ? mine : first, sends ? first : mine);
    }
  }

  void add_meeting(const MessageOperation& exchange, std::pair<int, int> way, const Posted& send,
                   const Posted& receive) {
    meetings_.push_back({.copy = {.action = StreamAction::copy,
                                  .rank = way.second,
                                  .stream = exchange.stream,
                                  .step = exchange.step,
                                  .owner = receive.end.owner,
                                  .payload = payload_of(exchange),
                                  .from = {way.first, send.end.slot},
                                  .to = {way.second, receive.end.slot}},
                         .from_stream = send.stream,
                         .from_at = send.at,
                         .to_stream = receive.stream,
                         .to_at = receive.at});
  }

  /// Calls `visit(weight, move)` for all that could happen next, until it returns true.
  template <class Visit>
  void for_each_move(Visit visit) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (can_advance(i) && visit(streams_[i].weight, [&] { advance(i); })) return;
    }
    for (Meeting& meeting : meetings_) {
      if (can_go_on(meeting) &&
          visit(streams_[meeting.to_stream].weight, [&] { go_on(meeting); })) {
        return;
      }
    }
  }
  std::uint64_t total_weight() {
    std::uint64_t total = 0;
    for_each_move([&](std::uint64_t weight, auto) {
      total += weight;
      return false;
    });
    return total;
  }

  const MessageProgram& program_of(std::size_t stream) const {
    return programs_[stream / kStreamsPerRank];
  }
  const MessageOperation& front(std::size_t stream) const {
    const Stream& s = streams_[stream];
    return program_of(stream).operations[s.numbers[s.at]];
  }

  bool can_advance(std::size_t number) const {
    const Stream& stream = streams_[number];
    if (stream.at == stream.numbers.size() || stream.began) return false;
    const std::size_t rank = number / kStreamsPerRank;
    const auto& record = records_[rank][stream.numbers[stream.at]];
    return !record || ended_[rank][*record];
  }

  void advance(std::size_t number) {
    const MessageOperation& operation = front(number);
    Stream& stream = streams_[number];
    if (operation.action == MessageAction::exchange && !operation.ends.empty()) {
      stream.began = true;
      stream.ends_left = operation.ends.size();
      return;
    }
    compute(static_cast<int>(number) / kStreamsPerRank, operation);
    end_front(number);
  }

  void end_front(std::size_t number) {
    Stream& stream = streams_[number];
    ended_[number / kStreamsPerRank][stream.numbers[stream.at]] = true;
    stream.began = false;
    ++stream.at;
  }

  void compute(int rank, const MessageOperation& o) {
    const StreamOperation operation{.rank = rank,
                                    .step = o.step,
                                    .owner = o.owner,
                                    .slot = o.slot,
                                    .gradient = o.gradient,
                                    .addend = o.addend};
    if (o.action == MessageAction::attend) machine_.attend(operation);
    if (o.action == MessageAction::add_gradient) machine_.add_gradient(operation);
  }

  bool has_begun(std::size_t stream, std::size_t at) const {
    return streams_[stream].at == at && streams_[stream].began;
  }
  bool can_go_on(const Meeting& meeting) const {
    if (meeting.state == Meeting::State::over) return false;
    return has_begun(meeting.from_stream, meeting.from_at) &&
           has_begun(meeting.to_stream, meeting.to_at);
  }

  void go_on(Meeting& meeting) {
    if (meeting.state == Meeting::State::ahead) {
      machine_.begin_copy(meeting.copy);
      meeting.state = Meeting::State::under_way;
      return;
    }
    machine_.end_copy(meeting.copy);
    meeting.state = Meeting::State::over;
    for (const std::size_t stream : {meeting.from_stream, meeting.to_stream}) {
      if (--streams_[stream].ends_left == 0) end_front(stream);
    }
  }

  /// Sender, receiver and communicator.
  using Line = std::tuple<int, int, StreamKind>;

  const std::vector<MessageProgram>& programs_;
  StreamMachine& machine_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<std::vector<std::optional<std::size_t>>> records_;  // of waits, per rank
  std::vector<std::vector<bool>> ended_;
  std::map<std::pair<Line, bool>, std::deque<Posted>> posted_;  // true: sends
  std::vector<Meeting> meetings_;
};

}  // namespace

void execute_in_random_order(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                             StreamMachine& machine) {
  RandomMessages(programs, seed, machine).run();
}

}  // namespace ringlab::ring
