// What slots hold and what is computed, in the order of issue: where nothing races, in every order.
#include <algorithm>
#include <map>
#include <utility>

#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring::stream_laws {
namespace {

/// Which contributions, (rank, owner), a sum is made of, and how often each.
using Sum = std::map<std::pair<int, int>, int>;

struct Contents {
  int owner = kNobody;
  Sum sum = {};
};

/// Walks through a program and keeps what each slot holds.
class Holdings {
 public:
  Holdings(const StreamProgram& program, Findings& findings)
      : program_(program), findings_(findings) {
    for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
      at(Payload::chunk, {rank, kHome}).owner = rank;
      at(Payload::gradients, {rank, kHome}).owner = rank;
    }
  }
  void walk() {
    for (const StreamOperation& operation : program_.operations) follow(operation);
  }
  const Sum& own_sum(int rank) { return at(Payload::gradients, {rank, kHome}).sum; }

 private:
  Contents& at(Payload payload, SlotPlace place) { return contents_[{payload, place}]; }

  void must_hold(const StreamOperation& operation, Payload payload, SlotPlace where) {
    const int owner = at(payload, where).owner;
    if (owner == operation.owner) return;
    std::string text = place(operation) + ": rank " + std::to_string(where.rank);
    text += payload == Payload::chunk ? " slot " : " gradient slot ";
    text += std::to_string(where.slot) + " holds ";
    text += owner == kNobody ? "nothing" : "what belongs to chunk " + std::to_string(owner);
    findings_.push_back(text);
  }

  void follow(const StreamOperation& operation) {
    if (operation.action == StreamAction::attend) attend(operation);
    if (operation.action == StreamAction::copy) copy(operation);
    if (operation.action == StreamAction::add_gradient) add(operation);
  }

  /// A sum begins anew with a contribution, the own one with its first.
  void attend(const StreamOperation& operation) {
    must_hold(operation, Payload::chunk, {operation.rank, operation.slot});
    if (program_.pass == Pass::forward) return;
    Contents& sum = at(Payload::gradients, {operation.rank, operation.gradient});
    sum = {.owner = operation.owner, .sum = {{{operation.rank, operation.owner}, 1}}};
  }
  void copy(const StreamOperation& operation) {
    must_hold(operation, operation.payload, operation.from);
    if (operation.to.slot == kHome) {
      findings_.push_back(place(operation) + ": it overwrites what is not in a slot");
    }
    const Contents copied = at(operation.payload, operation.from);
    at(operation.payload, operation.to) = copied;
  }
  void add(const StreamOperation& operation) {
    must_hold(operation, Payload::gradients, {operation.rank, operation.gradient});
    must_hold(operation, Payload::gradients, {operation.rank, operation.addend});
    const Sum addend = at(Payload::gradients, {operation.rank, operation.addend}).sum;
    Sum& sum = at(Payload::gradients, {operation.rank, operation.gradient}).sum;
    for (const auto& [part, times] : addend) sum[part] += times;
  }

  const StreamProgram& program_;
  Findings& findings_;
  std::map<std::pair<Payload, SlotPlace>, Contents> contents_;
};

/// Which contributions the schedule wants in the own sum of `owner`.
Sum wanted_sum(const Schedule& schedule, int owner) {
  Sum wanted;
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
      if (operation.verb == Verb::compute && operation.owner == owner) wanted[{rank, owner}] = 1;
    }
  }
  return wanted;
}

std::string times_text(int times) {
  return std::to_string(times) + (times == 1 ? " time" : " times");
}

void check_own_sum(int owner, const Sum& found, const Sum& wanted, Findings& findings) {
  const auto times_in = [](const Sum& sum, const std::pair<int, int>& part) {
    const auto at = sum.find(part);
    return at == sum.end() ? 0 : at->second;
  };
  Sum all = found;
  all.insert(wanted.begin(), wanted.end());
  for (const auto& [part, unused] : all) {
    const int due = times_in(wanted, part), is = times_in(found, part);
    if (due == is) continue;
    std::string text = "rank " + std::to_string(owner);
    text += ", all steps: its own sum has dK and dV of rank " + std::to_string(part.first);
    text += " on chunk " + std::to_string(part.second) + " " + times_text(is);
    text += ", not " + times_text(due);
    findings.push_back(text);
  }
}

/// An attend or an add, without its slots.
struct Computing {
  bool adds = false;
  int step = 0;
  int owner = 0;
  friend bool operator==(const Computing&, const Computing&) = default;
};
std::string text_of(const Computing& computing) {
  std::string text = "step " + std::to_string(computing.step);
  text += computing.adds ? ", add for chunk " : ", attend to chunk ";
  return text + std::to_string(computing.owner);
}

std::vector<Computing> wanted_work(const RankSchedule& schedule) {
  std::vector<Computing> wanted;
  for (const Operation& operation : schedule.operations) {
    const bool adds = operation.verb == Verb::add;
    if (!adds && operation.verb != Verb::compute) continue;
    wanted.push_back({adds, operation.step, operation.owner});
  }
  return wanted;
}
std::vector<Computing> work_of(const StreamProgram& program, int rank) {
  std::vector<Computing> work;
  for (const StreamOperation& operation : program.operations) {
    const bool adds = operation.action == StreamAction::add_gradient;
    if (operation.rank != rank || (!adds && operation.action != StreamAction::attend)) continue;
    work.push_back({adds, operation.step, operation.owner});
  }
  return work;
}

/// The first difference only: all that follows may be shifted.
void check_rank_work(int rank, const std::vector<Computing>& wanted,
                     const std::vector<Computing>& work, Findings& findings) {
  const auto [due, is] = std::ranges::mismatch(wanted, work);
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
  Holdings holdings(program, findings);
  holdings.walk();
  if (program.pass == Pass::forward) return;
  for (int owner = 0; owner < static_cast<int>(program.ranks.size()); ++owner) {
    check_own_sum(owner, holdings.own_sum(owner), wanted_sum(schedule, owner), findings);
  }
}

void check_work(const StreamProgram& program, const Schedule& schedule, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    check_rank_work(rank, wanted_work(schedule.ranks[static_cast<std::size_t>(rank)]),
                    work_of(program, rank), findings);
  }
  check_streams(program, findings);
}

}  // namespace ringlab::ring::stream_laws
