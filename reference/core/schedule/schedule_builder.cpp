// From visit orders to programs: skip what nobody needs, choose sources, assign slots.
#include <algorithm>

#include "reference/core/error.h"
#include "reference/core/schedule/schedule_plan.h"
#include "reference/core/schedule/visit_order.h"

namespace ringlab {
/// The chunks that every rank visits, its own left out, and the ranks it sends its own chunk to.
struct SchedulePlan::Visits {
  /// A chunk that a rank needs, and who is before and after it on the chunk's way.
  struct Meeting {
    int owner = 0;
    int source = 0;        ///< who sends K and V
    int before = kNobody;  ///< whose sum of dK, dV this rank adds its part to
    int after = kNobody;   ///< who adds its part to this rank's sum; nobody: the sum goes home
    std::vector<int> readers = {};  ///< to whom this rank passes the chunk on
  };

  std::vector<std::vector<Meeting>> of;
  std::vector<std::vector<int>> home_readers;
  /// Per owner, the last ranks of the runs along which its chunk is passed on, by number.
  std::vector<std::vector<int>> last_of_run;
};

namespace {

using Visits = SchedulePlan::Visits;
using Meeting = Visits::Meeting;

// With one slot a chunk cannot be passed on while the next one arrives (decision 7).
bool comes_from_owners(const ScheduleSpec& spec) {
  const ScheduleTraits traits = schedule_traits(spec.kind);
  return traits.from_owners || (!traits.holds_all && spec.slots == 1);
}

Visits visits_of_all(const ScheduleSpec& spec, const NeedMatrix& need) {
  const int ranks = need.ranks();
  Visits visits;
  visits.of.resize(static_cast<std::size_t>(ranks));
  visits.home_readers.resize(static_cast<std::size_t>(ranks));
  visits.last_of_run.resize(static_cast<std::size_t>(ranks));
  const bool direct = comes_from_owners(spec);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Stop& stop : visit_order(spec, ranks, rank)) {
      if (!need.needs(rank, stop.owner)) continue;
      // Chunks come by way of the neighbour only if that rank needs them itself (decision 8).
      const bool passed_on = stop.neighbour != stop.owner && need.needs(stop.neighbour, stop.owner);
      Meeting visit{.owner = stop.owner, .source = stop.owner};
      // Runs of gradients do not depend on who sends K and V, so that sums keep their bits.
      if (passed_on) visit.before = stop.neighbour;
      if (passed_on && !direct) visit.source = stop.neighbour;
      visits.of[static_cast<std::size_t>(rank)].push_back(visit);
    }
  }
  return visits;
}

/// numbers[rank][owner]: the number of the visit at which a rank meets an owner's chunk.
std::vector<std::vector<std::size_t>> visit_numbers(const Visits& visits) {
  const std::size_t ranks = visits.of.size();
  std::vector<std::vector<std::size_t>> numbers(ranks, std::vector<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t visit = 0; visit < visits.of[rank].size(); ++visit) {
      numbers[rank][static_cast<std::size_t>(visits.of[rank][visit].owner)] = visit;
    }
  }
  return numbers;
}

// Fills in the other ends of all visits: who reads from whom, and who adds after whom.
void connect(Visits& visits) {
  const auto numbers = visit_numbers(visits);
  const auto meeting = [&](int rank, int owner) -> Meeting& {
    const auto of = static_cast<std::size_t>(rank);
    return visits.of[of][numbers[of][static_cast<std::size_t>(owner)]];
  };
  for (int rank = 0; rank < static_cast<int>(visits.of.size()); ++rank) {
    for (const Meeting& visit : visits.of[static_cast<std::size_t>(rank)]) {
      if (visit.source == visit.owner) {
        visits.home_readers[static_cast<std::size_t>(visit.owner)].push_back(rank);
      } else {
        meeting(visit.source, visit.owner).readers.push_back(rank);
      }
      if (visit.before == kNobody) continue;
      meeting(visit.before, visit.owner).after = rank;
    }
  }
  for (int rank = 0; rank < static_cast<int>(visits.of.size()); ++rank) {
    for (const Meeting& visit : visits.of[static_cast<std::size_t>(rank)]) {
      if (visit.after != kNobody) continue;
      visits.last_of_run[static_cast<std::size_t>(visit.owner)].push_back(rank);
    }
  }
}

/// Writes the program of one rank.
class Writer {
 public:
  Writer(const ScheduleSpec& spec, const Visits& visits, const NeedMatrix& need, int rank,
         Pass pass)
      : visits_(visits),
        need_(need),
        mine_(visits.of[static_cast<std::size_t>(rank)]),
        rank_(rank),
        backward_(pass == Pass::backward),
        slots_(slot_count(spec)) {
    program_.slots = slots_;
  }

  RankSchedule write() {
    start();
    for (int step = 1; step <= count(); ++step) visit(step);
    finish();
    return std::move(program_);
  }

 private:
  // The first slot of sums that arrive; those before hold contributions.
  static constexpr int kArriving = 2;

  int count() const { return static_cast<int>(mine_.size()); }
  const Meeting& at(int step) const { return mine_[static_cast<std::size_t>(step - 1)]; }
  const std::vector<int>& home_readers() const {
    return visits_.home_readers[static_cast<std::size_t>(rank_)];
  }
  const std::vector<int>& home_sums() const {
    return visits_.last_of_run[static_cast<std::size_t>(rank_)];
  }
  int slot_count(const ScheduleSpec& spec) const {
    const ScheduleTraits traits = schedule_traits(spec.kind);
    // `slots` counts per direction; with one slot all chunks come from their owners, one by one.
    const int both = traits.both_sides && spec.slots > 1 ? 2 : 1;
    return traits.holds_all ? count() : std::min(spec.slots * both, count());
  }
  // Visits take slots in turn, so a slot is free when the visit `slots_` steps before is over.
  int slot_of(int step) const { return (step - 1) % slots_; }
  int contribution(int step) const { return step % 2; }
  int arriving(int step) const { return kArriving + step % 2; }

  void add(Operation operation) { program_.operations.push_back(operation); }

  void post_receive(int step) {
    add({.verb = Verb::post_receive,
         .step = step,
         .owner = at(step).owner,
         .peer = at(step).source,
         .slot = slot_of(step)});
  }
  void post_receive_gradient(int step) {
    // The first rank of a run has nobody before it, and begins the sum.
    if (!backward_ || step > count() || at(step).before == kNobody) return;
    add({.verb = Verb::post_receive,
         .payload = Payload::gradients,
         .step = step,
         .owner = at(step).owner,
         .peer = at(step).before,
         .gradient = arriving(step)});
    program_.gradient_slots = std::max(program_.gradient_slots, arriving(step) + 1);
  }
  void sends(Verb verb, int step) {
    for (const int reader : at(step).readers) {
      add({.verb = verb,
           .step = step,
           .owner = at(step).owner,
           .peer = reader,
           .slot = slot_of(step)});
    }
  }
  void home_sends(Verb verb) {
    for (const int reader : home_readers()) {
      add({.verb = verb, .step = 0, .owner = rank_, .peer = reader, .slot = kHome});
    }
  }
  void gradient_send(Verb verb, int step) {
    // The last of a run sends the sum home.
    const int to = at(step).after == kNobody ? at(step).owner : at(step).after;
    add({.verb = verb,
         .payload = Payload::gradients,
         .step = step,
         .owner = at(step).owner,
         .peer = to,
         .gradient = contribution(step)});
  }

  /// Receives into all slots and sends of the own chunk are under way while it is computed on.
  void start() {
    for (int step = 1; step <= slots_; ++step) post_receive(step);
    home_sends(Verb::post_send);
    if (backward_) {
      int slot = kFirstHomeSum;
      for (const int from : home_sums()) {
        add({.verb = Verb::post_receive,
             .payload = Payload::gradients,
             .step = 0,
             .owner = rank_,
             .peer = from,
             .gradient = slot++});
        program_.gradient_slots = slot;
      }
      // Posts two receives ahead: as many as there are slots for sums that arrive.
      for (int step = 1; step <= std::min(2, count()); ++step) post_receive_gradient(step);
    }
    if (need_.needs(rank_, rank_)) add({.verb = Verb::compute, .step = 0, .owner = rank_});
  }

  /// The slot of the chunk before is filled again as soon as that chunk has been passed on.
  void visit(int step) {
    // The chunk in the slot was computed on in the step before; here its sends are waited for.
    if (step > 1 && step - 1 + slots_ <= count()) {
      sends(Verb::wait_send, step - 1);
      post_receive(step - 1 + slots_);
    }
    const Operation here{.step = step, .owner = at(step).owner, .slot = slot_of(step)};
    Operation arrived = here;
    arrived.verb = Verb::wait_receive;
    arrived.peer = at(step).source;
    add(arrived);
    // Passed on before it is computed on, so that the next rank need not wait for this one.
    sends(Verb::post_send, step);
    // The contribution of two steps ago lies where this one is about to be computed.
    if (backward_ && step > 2) gradient_send(Verb::wait_send, step - 2);
    Operation compute = here;
    if (backward_) compute.gradient = contribution(step);
    add(compute);
    if (backward_) pass_gradient_on(step);
  }

  void pass_gradient_on(int step) {
    program_.gradient_slots = std::max(program_.gradient_slots, contribution(step) + 1);
    if (at(step).before != kNobody) {
      receive_and_add({.payload = Payload::gradients,
                       .step = step,
                       .owner = at(step).owner,
                       .peer = at(step).before,
                       .gradient = arriving(step)},
                      contribution(step));
    }
    // The slot of the sum that was just added is free again.
    if (step + 2 <= count()) post_receive_gradient(step + 2);
    gradient_send(Verb::post_send, step);
  }
  void receive_and_add(Operation arrived, int sum) {
    arrived.verb = Verb::wait_receive;
    add(arrived);
    add({.verb = Verb::add,
         .payload = Payload::gradients,
         .step = arrived.step,
         .owner = arrived.owner,
         .gradient = sum,
         .addend = arrived.gradient});
  }

  void finish() {
    // Sends that visit() has not waited for, as no later receive needed their slots.
    for (int step = std::max(1, count() - slots_ + 1); step <= count(); ++step) {
      sends(Verb::wait_send, step);
    }
    home_sends(Verb::wait_send);
    if (!backward_) return;
    for (int step = std::max(1, count() - 1); step <= count(); ++step) {
      gradient_send(Verb::wait_send, step);
    }
    // Home sums last, in the order of ranks: the order of addition is the same in every run.
    int slot = kFirstHomeSum;
    for (const int from : home_sums()) {
      receive_and_add({.payload = Payload::gradients,
                       .step = 0,
                       .owner = rank_,
                       .peer = from,
                       .gradient = slot++},
                      kHome);
    }
  }

  const Visits& visits_;
  const NeedMatrix& need_;
  const std::vector<Meeting>& mine_;
  const int rank_;
  const bool backward_;
  const int slots_;
  RankSchedule program_;
};

void check(const ScheduleSpec& spec) {
  const auto refuse = [](const char* what, int value) {
    throw_usage_error({.where = what, .expected = "1 or more", .actual = std::to_string(value)});
  };
  if (spec.slots < 1) refuse("slots", spec.slots);
  if (spec.node_ranks < 1) refuse("schedule double:W", spec.node_ranks);
}

}  // namespace

SchedulePlan::SchedulePlan(const ScheduleSpec& spec, NeedMatrix need)
    : spec_(spec), need_(std::move(need)) {
  check(spec);
  Visits visits = visits_of_all(spec, need_);
  connect(visits);
  visits_ = std::make_shared<const Visits>(std::move(visits));
}

RankSchedule SchedulePlan::program(int rank, Pass pass) const {
  return Writer(spec_, *visits_, need_, rank, pass).write();
}

Schedule build_schedule(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass) {
  const SchedulePlan plan(spec, need);
  Schedule schedule{.spec = spec, .pass = pass, .ranks = {}};
  for (int rank = 0; rank < need.ranks(); ++rank) {
    schedule.ranks.push_back(plan.program(rank, pass));
  }
  return schedule;
}

}  // namespace ringlab
