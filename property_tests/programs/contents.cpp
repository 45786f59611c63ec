#include "property_tests/programs/contents.h"

#include "reference/core/schedule/operation_words.h"

namespace ringlab::programs {
namespace {

using ring::SlotPlace;

void must_be_used(const Held& sum) {
  if (sum.unused) sum.unused("its sum is neither sent nor added");
}

/// The operation with which `rank` computes on the chunk of `owner`.
const Operation* compute_of(const Schedule& schedule, int rank, int owner) {
  for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
    if (operation.verb == Verb::compute && operation.owner == owner) return &operation;
  }
  return nullptr;
}

}  // namespace

std::string slot_text(Payload payload, int slot) {
  const bool chunk = payload == Payload::chunk;
  if (slot == kHome) return chunk ? "the own chunk" : "the own sum";
  return (chunk ? "slot " : "gradient slot ") + std::to_string(slot);
}

Contents::Contents(int ranks, Pass pass) : pass_(pass) {
  for (int rank = 0; rank < ranks; ++rank) {
    at(Payload::chunk, {rank, kHome}).owner = rank;
    at(Payload::gradients, {rank, kHome}).owner = rank;
  }
}

void Contents::must_hold(Payload payload, SlotPlace place, int owner, const Report& report) {
  const Held& held = at(payload, place);
  if (held.owner == owner) return;
  report(slot_text(payload, place.slot) +
         (held.owner == kNobody ? " holds nothing" : " holds chunk " + std::to_string(held.owner)));
}

void Contents::use_up(SlotPlace place, const Report& report) {
  if (place.slot == kHome) return;
  Held& sum = at(Payload::gradients, place);
  if (!sum.unused) report(slot_text(Payload::gradients, place.slot) + " was used up before");
  sum.unused = {};
}

void Contents::compute(int rank, const Operation& operation, const Report& report) {
  const int owner = operation.owner;
  must_hold(Payload::chunk, {rank, operation.slot}, owner, report);
  if (pass_ == Pass::forward) return;
  const bool home = operation.gradient == kHome;
  if (home != (owner == rank)) {
    report("its dK and dV do not belong into " + slot_text(Payload::gradients, operation.gradient));
  }
  Held& sum = at(Payload::gradients, {rank, operation.gradient});
  must_be_used(sum);
  sum = {.owner = home ? rank : owner,
         .sum = {{{rank, owner}, 1}},
         .unused = home ? Report{} : report};
}

void Contents::add(int rank, const Operation& operation, const Report& report) {
  const SlotPlace to{rank, operation.gradient}, from{rank, operation.addend};
  must_hold(Payload::gradients, from, operation.owner, report);
  must_hold(Payload::gradients, to, operation.owner, report);
  const std::string name = slot_text(Payload::gradients, to.slot);
  if (from == to) return report("it adds " + name + " to itself");
  Held& sum = at(Payload::gradients, to);
  if (to.slot != kHome && !sum.unused) report(name + " was used up before");
  for (const auto& [part, times] : at(Payload::gradients, from).sum) sum.sum[part] += times;
  use_up(from, report);
}

Held Contents::send(Payload payload, SlotPlace from, int owner, const Report& report) {
  must_hold(payload, from, owner, report);
  if (payload == Payload::gradients) use_up(from, report);
  return at(payload, from);
}

void Contents::receive(Payload payload, SlotPlace to, Held held, const Report& report) {
  if (to.slot == kHome) report("it would overwrite " + slot_text(payload, to.slot));
  Held& slot = at(payload, to);
  must_be_used(slot);
  slot = std::move(held);
  slot.unused = payload == Payload::gradients ? report : Report{};
}

void Contents::check_own_sum(const Schedule& schedule, int owner, Findings& findings) {
  const std::string home = " the sum of rank " + std::to_string(owner);
  const Sum& sum = at(Payload::gradients, {owner, kHome}).sum;
  const auto ranks = static_cast<int>(schedule.ranks.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const Operation* compute = compute_of(schedule, rank, owner);
    if (compute == nullptr || sum.contains({rank, owner})) continue;
    findings.push_back(place(rank, *compute) + ": its dK and dV never reach" + home);
  }
  for (const auto& [part, times] : sum) {
    const Operation compute{.owner = part.second};
    const Operation* scheduled = compute_of(schedule, part.first, part.second);
    const std::string where = place(part.first, scheduled == nullptr ? compute : *scheduled);
    if (part.second != owner || scheduled == nullptr) {
      findings.push_back(where + ": its dK and dV are added to" + home);
    } else if (times > 1) {
      findings.push_back(where + ": its dK and dV are added " + std::to_string(times) +
                         " times to" + home);
    }
  }
}

void Contents::check_end(const Schedule& schedule, Findings& findings) {
  if (pass_ == Pass::forward) return;
  for (const auto& [place, held] : held_) must_be_used(held);
  for (int owner = 0; owner < static_cast<int>(schedule.ranks.size()); ++owner) {
    check_own_sum(schedule, owner, findings);
  }
}

}  // namespace ringlab::programs
