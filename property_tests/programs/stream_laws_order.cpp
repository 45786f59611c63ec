// Who comes after whom: events, races, overlap. Nothing here looks at what slots hold.
//
// Waits bind to records issued before them, so the order of issue is one of the orders in which
// everything may happen. What is ordered in it by chance only is found by comparing clocks.
#include <map>
#include <optional>
#include <utility>

#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring::stream_laws {
namespace {

int streams_of(const StreamProgram& program) {
  return static_cast<int>(program.ranks.size()) * kStreamsPerRank;
}

/// The operations on one slot since it was last written, by number.
struct Uses {
  std::optional<std::size_t> writer = {};
  std::vector<std::size_t> readers = {};
};
using UsesOfSlots = std::map<std::pair<Payload, SlotPlace>, Uses>;

/// Calls `conflict(earlier)` for every operation that `number` must come after, and notes its use.
template <class Conflict>
void use_slot(UsesOfSlots& slots, const Access& access, std::size_t number, Conflict conflict) {
  Uses& uses = slots[{access.payload, access.place}];
  if (uses.writer && *uses.writer != number) conflict(*uses.writer);
  if (!access.writes) {
    uses.readers.push_back(number);
    return;
  }
  for (const std::size_t reader : uses.readers) {
    if (reader != number) conflict(reader);
  }
  uses = {.writer = number};
}

std::string order_text(const StreamOperation& later, const StreamOperation& earlier) {
  return place(later) + ": nothing makes it come after " + place(earlier);
}

bool is_computed(const StreamOperation& operation) {
  return operation.action == StreamAction::attend || operation.action == StreamAction::add_gradient;
}

/// The least order there can be: computing of a rank in its order, and data. Copies have no streams
/// here. Clocks count compute streams only, by rank.
class ForcedOrder {
 public:
  explicit ForcedOrder(const StreamProgram& program)
      : program_(program),
        ranks_(static_cast<int>(program.ranks.size())),
        computed_(program.ranks.size(), StreamClock(ranks_)) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) follow(i);
  }
  /// How many attends and adds of `rank` the operation has to come after.
  int before(std::size_t number, int rank) const { return ends_[number].of(rank); }

 private:
  void follow(std::size_t number) {
    const StreamOperation& operation = program_.operations[number];
    StreamClock clock(ranks_);
    const auto rank = static_cast<std::size_t>(operation.rank);
    if (is_computed(operation)) clock = computed_[rank];
    for (const Access& access : accesses_of(operation, program_.pass)) {
      use_slot(slots_, access, number, [&](std::size_t earlier) { clock.merge(ends_[earlier]); });
    }
    if (is_computed(operation)) {
      clock.tick(operation.rank);
      computed_[rank] = clock;
    }
    ends_.push_back(clock);
  }

  const StreamProgram& program_;
  const int ranks_;
  std::vector<StreamClock> computed_;
  UsesOfSlots slots_;
  std::vector<StreamClock> ends_;
};

/// Attends and adds of a rank, by number, and after which position of their stream each ended.
struct Computed {
  std::vector<std::size_t> numbers;
  std::vector<int> ends;
};
std::vector<Computed> computed_by_rank(const StreamProgram& program, const Clocks& clocks) {
  std::vector<Computed> computed(program.ranks.size());
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const StreamOperation& operation = program.operations[i];
    if (!is_computed(operation)) continue;
    Computed& of_rank = computed[static_cast<std::size_t>(operation.rank)];
    of_rank.numbers.push_back(i);
    of_rank.ends.push_back(clocks[i].of(stream_number(operation)));
  }
  return computed;
}

}  // namespace

Clocks check_events(const StreamProgram& program, Findings& findings) {
  const int streams = streams_of(program);
  std::vector<StreamClock> now(static_cast<std::size_t>(streams), StreamClock(streams));
  std::vector<std::optional<StreamClock>> recorded(static_cast<std::size_t>(program.events));
  Clocks clocks;
  for (const StreamOperation& operation : program.operations) {
    const int stream = stream_number(operation);
    StreamClock& clock = now[static_cast<std::size_t>(stream)];
    if (operation.action == StreamAction::wait) {
      const auto& event = recorded[static_cast<std::size_t>(operation.event)];
      if (event) clock.merge(*event);
      if (!event) findings.push_back(place(operation) + ": it was not recorded before");
    }
    clock.tick(stream);
    if (operation.action == StreamAction::record) {
      auto& event = recorded[static_cast<std::size_t>(operation.event)];
      if (event) findings.push_back(place(operation) + ": it was recorded before");
      event = clock;
    }
    clocks.push_back(clock);
  }
  return clocks;
}

std::vector<Race> races_of(const StreamProgram& program, const Clocks& clocks) {
  std::vector<Race> races;
  UsesOfSlots slots;
  for (std::size_t later = 0; later < program.operations.size(); ++later) {
    for (const Access& access : accesses_of(program.operations[later], program.pass)) {
      use_slot(slots, access, later, [&](std::size_t earlier) {
        const int stream = stream_number(program.operations[earlier]);
        if (clocks[later].of(stream) >= clocks[earlier].of(stream)) return;
        races.push_back({earlier, later});
      });
    }
  }
  return races;
}

void check_races(const StreamProgram& program, const Clocks& clocks, Findings& findings) {
  for (const Race& race : races_of(program, clocks)) {
    findings.push_back(
        order_text(program.operations[race.later], program.operations[race.earlier]));
  }
}

void check_overlap(const StreamProgram& program, const Clocks& clocks, Findings& findings) {
  const ForcedOrder forced(program);
  const std::vector<Computed> computed = computed_by_rank(program, clocks);
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const StreamOperation& copy = program.operations[i];
    if (copy.action != StreamAction::copy || copy.payload != Payload::chunk) continue;
    const Computed& mine = computed[static_cast<std::size_t>(copy.to.rank)];
    const int after = clocks[i].of(stream_number(copy.to.rank, StreamKind::compute));
    const auto must = static_cast<std::size_t>(forced.before(i, copy.to.rank));
    if (must >= mine.ends.size() || mine.ends[must] > after) continue;
    findings.push_back(place(copy) + ": it waits for " +
                       place(program.operations[mine.numbers[must]]) +
                       ", although its slot is free before");
  }
}

}  // namespace ringlab::ring::stream_laws
