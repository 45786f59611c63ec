// Laws of stream programs that no timing changes: computations, their streams, contents of slots.
#include "property_tests/programs/stream_laws.h"

#include <algorithm>
#include <iterator>

#include "property_tests/programs/contents.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::programs {
namespace {

using namespace ring;

std::string text_of(const Operation& computing) {
  const bool adds = computing.verb == Verb::add;
  return "step " + std::to_string(computing.step) +
         (adds ? ", add for chunk " : ", attend to chunk ") + std::to_string(computing.owner);
}
/// True when two computations are the same, slots aside.
bool is_same(const Operation& one, const Operation& other) {
  return one.verb == other.verb && one.step == other.step && one.owner == other.owner;
}

using Computing = std::vector<Operation>;

Computing wanted_work(const RankSchedule& schedule) {
  Computing wanted;
  std::ranges::copy_if(schedule.operations, std::back_inserter(wanted),
                       [](const Operation& operation) { return !is_message(operation); });
  return wanted;
}
Computing work_of(const StreamProgram& program, int rank) {
  Computing work;
  for (const StreamOperation& operation : program.operations) {
    if (operation.rank == rank && is_computed(operation)) work.push_back(computing_of(operation));
  }
  return work;
}

/// Reports the first difference only: all that follows may be shifted.
void check_rank_work(int rank, const Computing& wanted, const Computing& work, Findings& findings) {
  const auto [due, is] = std::ranges::mismatch(wanted, work, is_same);
  if (due == wanted.end() && is == work.end()) return;
  std::string text = "rank " + std::to_string(rank) + ", ";
  text += text_of(due == wanted.end() ? *is : *due);
  if (due == wanted.end()) {
    text += ": the schedule has no more of them";
  } else if (is == work.end()) {
    text += ": it is missing";
  } else {
    text += ": found " + text_of(*is) + " in its place";
  }
  findings.push_back(text);
}

void check_streams(const StreamProgram& program, Findings& findings) {
  for (const StreamOperation& operation : program.operations) {
    if (!touches_slots(operation)) continue;
    const bool copies = operation.action == StreamAction::copy;
    if (copies == (operation.stream == StreamKind::compute)) {
      findings.push_back(place(operation) + ": it is on the wrong stream");
    }
    if (!copies || operation.rank == operation.from.rank || operation.rank == operation.to.rank) {
      continue;
    }
    findings.push_back(place(operation) + ": rank " + std::to_string(operation.rank) +
                       " has nothing to do with it");
  }
}

}  // namespace

bool is_computed(const StreamOperation& operation) {
  return touches_slots(operation) && operation.action != StreamAction::copy;
}

Operation computing_of(const StreamOperation& operation) {
  const bool adds = operation.action == StreamAction::add_gradient;
  return {.verb = adds ? Verb::add : Verb::compute,
          .payload = adds ? Payload::gradients : Payload::chunk,
          .step = operation.step,
          .owner = operation.owner,
          .slot = operation.slot,
          .gradient = operation.gradient,
          .addend = operation.addend};
}

bool check_numbers(const StreamProgram& program, const Schedule& schedule, Findings& findings) {
  const auto ranks = static_cast<int>(program.ranks.size());
  if (schedule.ranks.size() != program.ranks.size() || schedule.pass != program.pass) {
    findings.emplace_back("the schedule has other ranks, or is of another pass");
    return false;
  }
  const auto has = [&](Payload payload, SlotPlace place) {
    if (place.rank < 0 || place.rank >= ranks) return false;
    const StreamRoom& room = program.ranks[static_cast<std::size_t>(place.rank)];
    return place.slot >= kHome &&
           place.slot < (payload == Payload::chunk ? room.slots : room.gradient_slots);
  };
  const std::size_t before = findings.size();
  for (const StreamOperation& operation : program.operations) {
    const bool orders =
        operation.action == StreamAction::record || operation.action == StreamAction::wait;
    const bool event_fits = operation.event >= 0 && operation.event < program.events;
    bool fits = operation.rank >= 0 && operation.rank < ranks && operation.owner >= 0 &&
                operation.owner < ranks && (!orders || event_fits);
    for (const Access& access : accesses_of(operation, program.pass)) {
      fits = fits && has(access.payload, access.place);
    }
    if (!fits) findings.push_back(place(operation) + ": a number is out of range");
  }
  return findings.size() == before;
}

void check_contents(const StreamProgram& program, const Schedule& schedule, Findings& findings) {
  Contents contents(static_cast<int>(program.ranks.size()), program.pass);
  for (const StreamOperation& o : program.operations) {
    const Report report = [&](const std::string& what) {
      findings.push_back(place(o) + ": " + what);
    };
    if (o.action == StreamAction::attend) contents.compute(o.rank, computing_of(o), report);
    if (o.action == StreamAction::add_gradient) contents.add(o.rank, computing_of(o), report);
    if (o.action != StreamAction::copy) continue;
    contents.receive(o.payload, o.to, contents.send(o.payload, o.from, o.owner, report), report);
  }
  contents.check_end(schedule, findings);
}

void check_work(const StreamProgram& program, const Schedule& schedule, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    check_rank_work(rank, wanted_work(schedule.ranks[static_cast<std::size_t>(rank)]),
                    work_of(program, rank), findings);
  }
  check_streams(program, findings);
}

}  // namespace ringlab::programs
