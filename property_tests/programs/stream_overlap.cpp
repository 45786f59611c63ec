// Copies that are held up by computing which does not concern them.
#include "property_tests/programs/stream_laws.h"

namespace ringlab::programs {
namespace {

using namespace ring;
using Clocks = std::vector<StreamClock>;

bool is_chunk_copy(const StreamOperation& operation) {
  return operation.action == StreamAction::copy && operation.payload == Payload::chunk;
}

/// The least order there can be: data, computing of a rank in its order, and copies that queue. A
/// receiver's chunks queue in the order of its steps, whatever the order of issue; chunks that a
/// sender copies to several ranks, and sums, queue as issued. Clocks count compute streams only, by
/// rank.
class ForcedOrder {
 public:
  explicit ForcedOrder(const StreamProgram& program)
      : program_(program),
        ranks_(static_cast<int>(program.ranks.size())),
        computed_(program.ranks.size(), StreamClock(ranks_)),
        sent_(program.ranks.size(), StreamClock(ranks_)),
        summed_(program.ranks.size(), StreamClock(ranks_)),
        arrived_(program.ranks.size(), {.step = 0, .clock = StreamClock(ranks_)}) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) follow(i);
  }
  /// The number of attends and adds of `rank` that the operation has to come after.
  int before(std::size_t number, int rank) const { return ends_[number].of(rank); }

 private:
  /// The last chunk that a rank copied to itself: its step, and the clock of the copy.
  struct Arrival {
    int step = 0;
    StreamClock clock;
  };

  void follow(std::size_t number) {
    const StreamOperation& operation = program_.operations[number];
    StreamClock clock(ranks_);
    const auto rank = static_cast<std::size_t>(operation.rank);
    if (is_computed(operation)) clock = computed_[rank];
    for (const Access& access : accesses_of(operation, program_.pass)) {
      slots_.use(access, number, [&](std::size_t earlier) { clock.merge(ends_[earlier]); });
    }
    if (is_computed(operation)) {
      clock.tick(operation.rank);
      computed_[rank] = clock;
    }
    if (operation.action == StreamAction::copy) queue(operation, clock);
    ends_.push_back(clock);
  }

  void queue(const StreamOperation& copy, StreamClock& clock) {
    const auto rank = static_cast<std::size_t>(copy.rank);
    if (is_chunk_copy(copy) && copy.rank == copy.to.rank) return arrive(copy, clock);
    StreamClock& queued = is_chunk_copy(copy) ? sent_[rank] : summed_[rank];
    clock.merge(queued);
    queued = clock;
  }

  /// Queues a chunk by step: one that came before its turn would only wait for earlier chunks.
  void arrive(const StreamOperation& copy, StreamClock& clock) {
    Arrival& last = arrived_[static_cast<std::size_t>(copy.rank)];
    if (copy.step < last.step) return;
    clock.merge(last.clock);
    last = {.step = copy.step, .clock = clock};
  }

  const StreamProgram& program_;
  const int ranks_;
  std::vector<StreamClock> computed_;
  std::vector<StreamClock> sent_, summed_;  // by rank: its last copy of a chunk, of a sum
  std::vector<Arrival> arrived_;
  SlotUses slots_;
  std::vector<StreamClock> ends_;
};

/// Attends and adds of a rank, by number, and the position on their stream at which each ended.
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

void check_overlap(const StreamProgram& program, const Clocks& clocks, Findings& findings) {
  const ForcedOrder forced(program);
  const std::vector<Computed> computed = computed_by_rank(program, clocks);
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const StreamOperation& copy = program.operations[i];
    if (!is_chunk_copy(copy)) continue;
    const Computed& mine = computed[static_cast<std::size_t>(copy.to.rank)];
    const int after = clocks[i].of(stream_number(copy.to.rank, StreamKind::compute));
    const auto must = static_cast<std::size_t>(forced.before(i, copy.to.rank));
    if (must >= mine.ends.size() || mine.ends[must] > after) continue;
    findings.push_back(place(copy) + ": it waits for " +
                       place(program.operations[mine.numbers[must]]) +
                       ", although its slot is free before");
  }
}

}  // namespace ringlab::programs
