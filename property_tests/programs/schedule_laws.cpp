#include "property_tests/programs/schedule_laws.h"

#include <map>

#include "reference/core/schedule/operation_words.h"

namespace ringlab::programs {
namespace {

/// The fault of an operation with a number out of range; empty when there is none.
std::string bad_number(const Schedule& schedule, int rank, const Operation& operation) {
  const auto ranks = static_cast<int>(schedule.ranks.size());
  const RankSchedule& program = schedule.ranks[static_cast<std::size_t>(rank)];
  const auto is_slot = [](int slot, int count) { return slot >= kHome && slot < count; };
  const bool carries_other =
      operation.verb == (concerns_gradients(operation) ? Verb::compute : Verb::add);
  if (operation.verb < Verb::post_receive || operation.verb > Verb::add || carries_other) {
    return "no such action";
  }
  if (operation.step < 0) return "steps count from 0";
  if (operation.owner < 0 || operation.owner >= ranks) return "no rank owns that chunk";
  const bool has_peer = operation.peer >= 0 && operation.peer < ranks && operation.peer != rank;
  if (is_message(operation) && !has_peer) return "the peer is not another rank";
  if (!is_slot(operation.slot, program.slots)) return "slots declares fewer slots";
  if (!is_slot(operation.gradient, program.gradient_slots)) return "gradient_slots declares fewer";
  if (!is_slot(operation.addend, program.gradient_slots)) return "gradient_slots declares fewer";
  if (schedule.pass == Pass::forward && concerns_gradients(operation)) {
    return "the forward pass has no gradients";
  }
  return {};
}

std::string place_without_action(int rank, const Operation& operation) {
  return "rank " + std::to_string(rank) + ", step " + std::to_string(operation.step);
}

/// Checks that the own chunk is visited in step 0, the others in 1, 2, …, and that other operations
/// have the step of their chunk's visit.
void check_steps(int rank, const RankSchedule& program, Findings& findings) {
  std::map<int, int> step_of = {{rank, 0}};
  int visits = 0;
  for (const Operation& operation : program.operations) {
    if (operation.verb != Verb::compute || step_of.contains(operation.owner)) continue;
    step_of[operation.owner] = ++visits;
  }
  for (const Operation& operation : program.operations) {
    const auto found = step_of.find(operation.owner);
    if (found == step_of.end() || found->second == operation.step) continue;
    findings.push_back(place(rank, operation) + ": that chunk is visited in step " +
                       std::to_string(found->second));
  }
}

/// The place of the first operation of `rank` that is about the chunk of `owner`.
std::string place_of_chunk(int rank, const RankSchedule& program, int owner) {
  for (const Operation& operation : program.operations) {
    if (operation.owner == owner) return place_without_action(rank, operation);
  }
  return "rank " + std::to_string(rank) + (owner == rank ? ", step 0" : ", no step");
}

void check_computes(int rank, const RankSchedule& program, const NeedMatrix& need,
                    Findings& findings) {
  std::vector<int> computed(static_cast<std::size_t>(need.ranks()));
  for (const Operation& operation : program.operations) {
    if (operation.verb != Verb::compute) continue;
    if (!need.needs(rank, operation.owner)) {
      findings.push_back(place(rank, operation) + ": no query of this rank sees that chunk");
    }
    if (++computed[static_cast<std::size_t>(operation.owner)] > 1) {
      findings.push_back(place(rank, operation) + ": that chunk was computed before");
    }
  }
  for (int owner = 0; owner < need.ranks(); ++owner) {
    if (!need.needs(rank, owner) || computed[static_cast<std::size_t>(owner)] > 0) continue;
    findings.push_back(place_of_chunk(rank, program, owner) + ": chunk " + std::to_string(owner) +
                       " is needed and never computed");
  }
}

}  // namespace

bool check_numbers(const Schedule& schedule, const NeedMatrix& need, Findings& findings) {
  const std::size_t before = findings.size();
  if (schedule.ranks.size() != static_cast<std::size_t>(need.ranks())) {
    findings.push_back("a schedule of " + std::to_string(schedule.ranks.size()) +
                       " ranks for a need matrix of " + std::to_string(need.ranks()));
    return false;
  }
  for (int rank = 0; rank < need.ranks(); ++rank) {
    for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
      const std::string reason = bad_number(schedule, rank, operation);
      if (reason.empty()) continue;
      findings.push_back(place_without_action(rank, operation) + ": " + reason);
    }
  }
  return findings.size() == before;
}

void check_visits(const Schedule& schedule, const NeedMatrix& need, Findings& findings) {
  for (int rank = 0; rank < need.ranks(); ++rank) {
    const RankSchedule& program = schedule.ranks[static_cast<std::size_t>(rank)];
    check_computes(rank, program, need, findings);
    check_steps(rank, program, findings);
  }
}

Accesses accesses_of(int rank, const Operation& operation, Pass pass) {
  const auto access = [&](Payload payload, int slot, bool writes) -> ring::Access {
    return {.payload = payload, .place = {rank, slot}, .writes = writes};
  };
  switch (operation.verb) {
    case Verb::post_receive:
      return {access(operation.payload, slot_of(operation), true)};
    case Verb::post_send:
      return {access(operation.payload, slot_of(operation), false)};
    case Verb::compute:
      if (pass == Pass::forward) return {access(Payload::chunk, operation.slot, false)};
      return {access(Payload::chunk, operation.slot, false),
              access(Payload::gradients, operation.gradient, true)};
    case Verb::add:
      return {access(Payload::gradients, operation.addend, false),
              access(Payload::gradients, operation.gradient, true)};
    case Verb::wait_receive:
    case Verb::wait_send:
      break;
  }
  return {};
}

}  // namespace ringlab::programs
