// What the order of issue, the streams and the events of one rank say: nothing here looks at other
// ranks.
#include <map>
#include <optional>
#include <utility>

#include "property_tests/programs/message_laws.h"

namespace ringlab::ring::message_laws {
namespace {

/// One use of a slot by an operation of its own rank.
struct SlotUse {
  Payload payload = Payload::chunk;
  int slot = kHome;
  bool writes = false;
};

std::vector<SlotUse> uses_of(const MessageOperation& operation, Pass pass) {
  switch (operation.action) {
    case MessageAction::attend:
      if (pass == Pass::forward) return {{Payload::chunk, operation.slot, false}};
      return {{Payload::chunk, operation.slot, false},
              {Payload::gradients, operation.gradient, true}};
    case MessageAction::add_gradient:
      return {{Payload::gradients, operation.addend, false},
              {Payload::gradients, operation.gradient, true}};
    case MessageAction::exchange: {
      std::vector<SlotUse> uses;
      for (const MessageEnd& end : operation.ends) {
        uses.push_back({payload_of(operation), end.slot, end.side == MessageSide::receive});
      }
      return uses;
    }
    case MessageAction::record:
    case MessageAction::wait:
      break;
  }
  return {};
}

/// Follows the operations of a rank in the order of issue; clocks count its streams.
class RankOrder {
 public:
  RankOrder(const MessageProgram& program, Findings& findings)
      : program_(program),
        findings_(findings),
        now_(kStreamsPerRank, StreamClock(kStreamsPerRank)),
        recorded_(static_cast<std::size_t>(program.events)) {}

  void follow() {
    for (const MessageOperation& operation : program_.operations) {
      StreamClock& clock = now_[static_cast<std::size_t>(operation.stream)];
      if (operation.action == MessageAction::wait) wait(operation, clock);
      if (operation.action == MessageAction::exchange) exchange(operation);
      clock.tick(static_cast<int>(operation.stream));
      if (operation.action == MessageAction::record) record(operation, clock);
      use_slots(operation, clock);
    }
  }

 private:
  /// A use, and how far its stream was when it had ended.
  struct Earlier {
    const MessageOperation* operation = nullptr;
    int end = 0;
  };
  struct Uses {
    std::optional<Earlier> writer = {};
    std::vector<Earlier> readers = {};
  };

  void find(const MessageOperation& operation, const std::string& what) {
    findings_.push_back(place(program_.rank, operation) + ": " + what);
  }

  void wait(const MessageOperation& operation, StreamClock& clock) {
    const auto& event = recorded_[static_cast<std::size_t>(operation.event)];
    if (!event) return find(operation, "it was not recorded before");
    clock.merge(*event);
  }
  void record(const MessageOperation& operation, const StreamClock& clock) {
    auto& event = recorded_[static_cast<std::size_t>(operation.event)];
    if (event) find(operation, "it was recorded before");
    event = clock;
  }

  void exchange(const MessageOperation& operation) {
    const std::pair turn(operation.step, operation.stream);
    if (turn <= last_turn_) find(operation, "it is not in the order of rounds");
    last_turn_ = turn;
  }

  void must_follow(const Earlier& earlier, const MessageOperation& operation,
                   const StreamClock& clock) {
    if (earlier.operation == &operation) {
      find(operation, "its messages touch the same slot, and one of them writes it");
    } else if (clock.of(static_cast<int>(earlier.operation->stream)) < earlier.end) {
      find(operation, "nothing makes it come after " + place(program_.rank, *earlier.operation));
    }
  }

  void use_slots(const MessageOperation& operation, const StreamClock& clock) {
    const Earlier mine{&operation, clock.of(static_cast<int>(operation.stream))};
    for (const SlotUse& use : uses_of(operation, program_.pass)) {
      Uses& uses = uses_[{use.payload, use.slot}];
      if (uses.writer) must_follow(*uses.writer, operation, clock);
      if (!use.writes) {
        uses.readers.push_back(mine);
        continue;
      }
      for (const Earlier& reader : uses.readers) must_follow(reader, operation, clock);
      uses = {.writer = mine};
    }
  }

  const MessageProgram& program_;
  Findings& findings_;
  std::vector<StreamClock> now_;
  std::vector<std::optional<StreamClock>> recorded_;
  std::pair<int, StreamKind> last_turn_{0, StreamKind::sums};
  std::map<std::pair<Payload, int>, Uses> uses_;
};

bool fits(const MessageProgram& program, const MessageOperation& operation, int ranks) {
  const bool on_compute = operation.stream == StreamKind::compute;
  switch (operation.action) {
    case MessageAction::attend:
    case MessageAction::add_gradient:
      return on_compute;
    case MessageAction::exchange:
      for (const MessageEnd& end : operation.ends) {
        if (end.peer < 0 || end.peer >= ranks || end.peer == program.rank) return false;
      }
      return !on_compute;
    case MessageAction::record:
    case MessageAction::wait:
      return operation.event >= 0 && operation.event < program.events;
  }
  return false;
}

}  // namespace

bool check_programs(const std::vector<MessageProgram>& programs, Findings& findings) {
  const auto ranks = static_cast<int>(programs.size());
  const std::size_t before = findings.size();
  for (int rank = 0; rank < ranks; ++rank) {
    const MessageProgram& program = programs[static_cast<std::size_t>(rank)];
    if (program.rank != rank || program.pass != programs.front().pass || program.events < 0) {
      findings.push_back("program " + std::to_string(rank) + " is of another rank or pass");
      continue;
    }
    for (const MessageOperation& operation : program.operations) {
      if (fits(program, operation, ranks)) continue;
      findings.push_back(place(rank, operation) + ": wrong stream, or a number out of range");
    }
  }
  return findings.size() == before;
}

void check_slots(const MessageProgram& program, Findings& findings) {
  RankOrder(program, findings).follow();
}

}  // namespace ringlab::ring::message_laws
