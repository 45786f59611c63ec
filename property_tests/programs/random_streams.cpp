#include "property_tests/programs/random_streams.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace ringlab::ring {
namespace {

constexpr std::int64_t kTurnNs = 1000;  // of a delay
constexpr std::int64_t kMostTurns = 64;

/// Per wait, the record that it is about, by number.
std::vector<std::optional<std::size_t>> records_of_waits(const StreamProgram& program) {
  std::vector<std::optional<std::size_t>> last(static_cast<std::size_t>(program.events));
  std::vector<std::optional<std::size_t>> records(program.operations.size());
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const StreamOperation& operation = program.operations[i];
    if (operation.action == StreamAction::record) {
      last[static_cast<std::size_t>(operation.event)] = i;
    }
    if (operation.action == StreamAction::wait) {
      records[i] = last[static_cast<std::size_t>(operation.event)];
    }
  }
  return records;
}

class RandomOrder {
 public:
  RandomOrder(const StreamProgram& program, std::uint64_t seed, StreamMachine& machine)
      : program_(program),
        machine_(machine),
        random_(seed),
        records_(records_of_waits(program)),
        ended_(program.operations.size()),
        streams_(program.ranks.size() * kStreamsPerRank) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      streams_[static_cast<std::size_t>(stream_number(program.operations[i]))].numbers.push_back(i);
    }
    for (Stream& stream : streams_) stream.weight = std::uint64_t{1} << below(9);
  }

  void run() {
    std::size_t left = ended_.size();
    while (left > 0) {
      Stream& stream = draw_stream();
      if (advance(stream)) --left;
    }
  }

 private:
  struct Stream {
    std::vector<std::size_t> numbers = {};  ///< its operations
    std::size_t at = 0;
    bool began = false;  ///< the copy or delay at its front
    std::int64_t turns = 0;
    std::uint64_t weight = 1;
  };

  std::uint64_t below(std::uint64_t count) { return random_() % count; }

  bool can_advance(const Stream& stream) const {
    if (stream.at == stream.numbers.size()) return false;
    const auto& record = records_[stream.numbers[stream.at]];
    return !record || ended_[*record];
  }

  /// There always is one: what was issued first of all that has not ended waits for nothing.
  Stream& draw_stream() {
    std::uint64_t total = 0;
    for (const Stream& stream : streams_) total += can_advance(stream) ? stream.weight : 0;
    assert(total > 0);
    std::uint64_t drawn = below(total);
    for (Stream& stream : streams_) {
      const std::uint64_t weight = can_advance(stream) ? stream.weight : 0;
      if (drawn < weight) return stream;
      drawn -= weight;
    }
    return streams_.back();
  }

  /// Whether the operation at the front has ended.
  bool advance(Stream& stream) {
    const std::size_t number = stream.numbers[stream.at];
    if (!execute(program_.operations[number], stream)) return false;
    ended_[number] = true;
    stream.began = false;
    ++stream.at;
    return true;
  }

  bool execute(const StreamOperation& operation, Stream& stream) {
    const bool began = std::exchange(stream.began, true);
    switch (operation.action) {
      case StreamAction::copy:
        if (began) machine_.end_copy(operation);
        if (!began) machine_.begin_copy(operation);
        return began;
      case StreamAction::attend:
        machine_.attend(operation);
        return true;
      case StreamAction::add_gradient:
        machine_.add_gradient(operation);
        return true;
      case StreamAction::delay:
        if (!began) stream.turns = std::min(operation.delay_ns / kTurnNs, kMostTurns);
        return stream.turns-- <= 0;
      case StreamAction::record:
      case StreamAction::wait:
        break;
    }
    return true;
  }

  const StreamProgram& program_;
  StreamMachine& machine_;
  std::mt19937_64 random_;
  const std::vector<std::optional<std::size_t>> records_;
  std::vector<bool> ended_;
  std::vector<Stream> streams_;
};

}  // namespace

void execute_in_random_order(const StreamProgram& program, std::uint64_t seed,
                             StreamMachine& machine) {
  RandomOrder(program, seed, machine).run();
}

}  // namespace ringlab::ring
