#include "property_tests/programs/random_messages.h"

#include <optional>
#include <random>
#include <vector>

#include "property_tests/programs/message_meetings.h"
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

/// A message on its way.
struct Message {
  StreamOperation copy;
  Meeting meeting;
  enum class State { ahead, under_way, over } state = State::ahead;
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
    for (const Meeting& meeting : meetings_of(programs).met) {
      messages_.push_back({.copy = copy_of(programs, meeting), .meeting = meeting});
    }
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
      stream.numbers.push_back(i);
      records.emplace_back();
      if (operation.event == kNoEvent) continue;
      auto& record = last[static_cast<std::size_t>(operation.event)];
      if (operation.action == MessageAction::record) record = i;
      if (operation.action == MessageAction::wait) records.back() = record;
    }
    ended_.emplace_back(program.operations.size());
  }

  /// Calls `visit(weight, move)` for all that could happen next, until it returns true.
  template <class Visit>
  void for_each_move(Visit visit) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (can_advance(i) && visit(streams_[i].weight, [&] { advance(i); })) return;
    }
    for (Message& message : messages_) {
      if (can_go_on(message) &&
          visit(stream_of(message.meeting.receive).weight, [&] { go_on(message); })) {
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
    const StreamOperation operation = computing_on_stream(rank, o);
    if (o.action == MessageAction::attend) machine_.attend(operation);
    if (o.action == MessageAction::add_gradient) machine_.add_gradient(operation);
  }

  std::size_t stream_number_of(const MessagePlace& end) const {
    return stream_at(end.rank, operation_at(programs_, end).stream);
  }
  const Stream& stream_of(const MessagePlace& end) const { return streams_[stream_number_of(end)]; }
  bool has_begun(const MessagePlace& end) const {
    const Stream& stream = stream_of(end);
    return stream.began && stream.numbers[stream.at] == end.operation;
  }
  bool can_go_on(const Message& message) const {
    return message.state != Message::State::over && has_begun(message.meeting.send) &&
           has_begun(message.meeting.receive);
  }

  void go_on(Message& message) {
    if (message.state == Message::State::ahead) {
      machine_.begin_copy(message.copy);
      message.state = Message::State::under_way;
      return;
    }
    machine_.end_copy(message.copy);
    message.state = Message::State::over;
    for (const MessagePlace& end : {message.meeting.send, message.meeting.receive}) {
      const std::size_t stream = stream_number_of(end);
      if (--streams_[stream].ends_left == 0) end_front(stream);
    }
  }

  const std::vector<MessageProgram>& programs_;
  StreamMachine& machine_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<std::vector<std::optional<std::size_t>>> records_;  // of waits, per rank
  std::vector<std::vector<bool>> ended_;
  std::vector<Message> messages_;
};

}  // namespace

void execute_in_random_order(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                             StreamMachine& machine) {
  RandomMessages(programs, seed, machine).run();
}

}  // namespace ringlab::ring
