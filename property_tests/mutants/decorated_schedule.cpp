// Mistakes of schedules: the real engine, executing a schedule that was tampered with.
//
// Tampered schedules stay within slots, and every message has its wait, so that a wrong schedule
// gives wrong numbers or an error, never a crash.
#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "optimized/ring/engine.h"
#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {
namespace {

using Operations = std::vector<Operation>;
using Tamper = void (*)(Operations& program, int rank);

using MakeSchedule = std::function<Schedule(const ScheduleSpec&, const NeedMatrix&, Pass)>;

/// The real engine, executing another schedule than the one it would build.
Mutant engine_with(MutantInfo info, const MakeSchedule& make_schedule) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [make_schedule](const AttentionInput& input, const RunOptions& options) {
    RunOptions limited = options;
    limited.timeout_s = std::min(options.timeout_s, kMutantTimeout);
    ring::EngineParts parts;
    parts.make_schedule = make_schedule;
    return ring::Engine(parts).run(input, limited);
  };
  return {std::move(info), std::move(subject)};
}

/// Tampers with every rank's program.
Mutant with_programs(MutantInfo info, Tamper tamper) {
  return engine_with(std::move(info),
                     [tamper](const ScheduleSpec& spec, const NeedMatrix& need, Pass pass) {
                       Schedule schedule = build_schedule(spec, need, pass);
                       for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
                         tamper(schedule.ranks[rank].operations, static_cast<int>(rank));
                       }
                       return schedule;
                     });
}

bool is(const Operation& operation, Verb verb, Payload payload) {
  return operation.verb == verb && operation.payload == payload;
}
bool is_compute(const Operation& operation) { return operation.verb == Verb::compute; }
bool is_chunk(const Operation& operation, Verb verb) { return is(operation, verb, Payload::chunk); }

Operations::iterator last_of(Operations& program, Verb verb) {
  const auto found = std::ranges::find(program.rbegin(), program.rend(), verb, &Operation::verb);
  return found == program.rend() ? program.end() : std::prev(found.base());
}

/// Moves each `moved` of a payload to just before the first `target` of that step.
void move_before(Operations& program, Payload payload, Verb moved, Verb target) {
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (!is(program[at], moved, payload) || program[at].step == 0) continue;
    const auto place = std::ranges::find_if(program, [&](const Operation& operation) {
      return is(operation, target, payload) && operation.step == program[at].step;
    });
    const auto index = static_cast<std::size_t>(place - program.begin());
    if (index >= at) continue;
    std::rotate(place, program.begin() + static_cast<std::ptrdiff_t>(at),
                program.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

/// Leaves out the last step: on a full ring one chunk of P is never seen.
void drop_the_last_hop(Operations& program, int) {
  const auto last = last_of(program, Verb::compute);
  if (last != program.end() && last->step > 0) program.erase(last);
}

/// Repeats the last step: its keys count twice.
void compute_the_last_hop_twice(Operations& program, int) {
  const auto last = last_of(program, Verb::compute);
  if (last != program.end()) program.insert(last, Operation(*last));
}

/// Leaves out the own chunk, which no message brings again.
void drop_the_own_chunk(Operations& program, int rank) {
  if (rank == 0) return;
  std::erase_if(program, [](const Operation& operation) {
    return is_compute(operation) && operation.step == 0;
  });
}

/// Computes on the slot of the step before.
void use_stale_slots(Operations& program, int) {
  int before = kHome;
  for (Operation& operation : program) {
    if (!is_compute(operation) || operation.slot == kHome) continue;
    if (before == kHome) before = operation.slot;
    std::swap(before, operation.slot);
  }
}

/// Pairs keys of one step with positions of the next.
void shift_the_owners(Operations& program, int) {
  Operation* before = nullptr;
  for (Operation& operation : program) {
    if (!is_compute(operation) || operation.slot == kHome) continue;
    if (before != nullptr) std::swap(before->owner, operation.owner);
    before = &operation;
  }
}

/// Computes on a slot while its chunk is still on the way.
void compute_before_arrival(Operations& program, int) {
  move_before(program, Payload::chunk, Verb::compute, Verb::wait_receive);
}

/// Passes a slot on before its chunk has arrived.
void send_before_arrival(Operations& program, int) {
  move_before(program, Payload::chunk, Verb::post_send, Verb::wait_receive);
}

/// Posts the receive that fills a slot again before that slot's chunk is even there.
void free_slots_early(Operations& program, int) {
  const auto is_post = [](const Operation& operation) {
    return is_chunk(operation, Verb::post_receive);
  };
  Operations posts;
  std::ranges::copy_if(program, std::back_inserter(posts), is_post);
  std::erase_if(program, is_post);
  program.insert(program.begin(), posts.begin(), posts.end());
}

/// Moves all waits for sends to the end: a slot is filled while its chunk still leaves.
void forget_to_wait_for_sends(Operations& program, int) {
  std::stable_partition(program.begin(), program.end(), [](const Operation& operation) {
    return !is_chunk(operation, Verb::wait_send);
  });
}

/// Receives nothing before the own chunk has gone: fine with buffered sends, else a deadlock.
void send_first(Operations& program, int) {
  const auto is_home_send = [](const Operation& operation) {
    return operation.step == 0 &&
           (is_chunk(operation, Verb::post_send) || is_chunk(operation, Verb::wait_send));
  };
  std::stable_partition(program.begin(), program.end(), is_home_send);
}

/// Leaves out the last addition of gradients.
void lose_the_last_gradient(Operations& program, int) {
  const auto last = last_of(program, Verb::add);
  if (last != program.end()) program.erase(last);
}

/// Repeats an addition of gradients.
void add_a_gradient_twice(Operations& program, int) {
  const auto last = last_of(program, Verb::add);
  if (last != program.end()) program.insert(last, Operation(*last));
}

/// Adds the sum that arrived after the own part has left.
void send_gradients_before_adding(Operations& program, int) {
  move_before(program, Payload::gradients, Verb::post_send, Verb::add);
}

/// Computes dK and dV of this step into the slot from which those of the last one are sent.
void swap_gradient_slots(Operations& program, int) {
  for (Operation& operation : program) {
    if (is_compute(operation) && operation.gradient != kHome) {
      operation.gradient = 1 - operation.gradient;
    }
  }
}

/// Leaves out the chunk of the rank just before, as if it were out of sight.
Schedule skip_a_needed_chunk(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass) {
  NeedMatrix less = need;
  for (int rank = 1; rank < need.ranks(); ++rank) less.set(rank, rank - 1, 0);
  return build_schedule(spec, less, pass);
}

std::vector<Mutant> of_chunks() {
  return {
      with_programs(
          {"schedule_last_hop_dropped", "optimized", "the chunk that comes last is unseen",
           "How many chunks does a rank of P compute on?", "zhuzilin 63b1c31"},
          drop_the_last_hop),
      with_programs({"schedule_chunk_computed_twice", "optimized",
                     "the last chunk counts twice in row_sum and acc",
                     "Which quantity changes when all keys are there twice?", "classic"},
                    compute_the_last_hop_twice),
      with_programs({"schedule_own_chunk_skipped", "optimized",
                     "all ranks but the first ignore the keys they own",
                     "Which chunk needs no message?", "classic"},
                    drop_the_own_chunk),
      engine_with({"schedule_needed_chunk_skipped", "optimized",
                   "the chunk of the rank just before is taken for invisible",
                   "Which chunks does the first query of a rank see?", "TE #3331"},
                  skip_a_needed_chunk),
      with_programs({"schedule_stale_slot", "optimized", "computes on the slot of the step before",
                     "Which slot did this step's chunk arrive in?", "diffusers #14265"},
                    use_stale_slots),
      with_programs({"schedule_owners_shifted", "optimized",
                     "keys of one chunk meet the positions of another",
                     "Do the positions travel with the chunk?", "SGLang #32098"},
                    shift_the_owners),
  };
}

std::vector<Mutant> of_waits() {
  return {
      with_programs({"schedule_compute_before_arrival", "optimized",
                     "computes on a slot whose chunk is still under way",
                     "What has to be true of a slot before it is read?", "Cornstarch #77"},
                    compute_before_arrival),
      with_programs({"schedule_sent_before_arrival", "optimized",
                     "passes on a slot whose chunk is still under way",
                     "What does a send read, and when?", "BurstAttention 7d81ca9"},
                    send_before_arrival),
      with_programs({"schedule_slot_freed_early", "optimized",
                     "a slot is received into again before its chunk was computed on",
                     "When is a slot free again?", "zhuzilin 8c83989"},
                    free_slots_early),
      with_programs(
          {"schedule_send_not_awaited", "optimized",
           "a slot is received into again while it is still being sent",
           "Who may still be reading a slot after it was computed on?", "zhuzilin 8c83989"},
          forget_to_wait_for_sends),
      with_programs({"schedule_send_first", "optimized",
                     "every rank waits for its send before it posts a receive",
                     "Who receives when everybody sends first?", "NCCL #479"},
                    send_first),
  };
}

std::vector<Mutant> of_gradients() {
  return {
      with_programs({"schedule_last_gradient_lost", "optimized",
                     "the sum of dK, dV that arrives last is not added",
                     "How many sums does a rank add up in the end?", "zhuzilin 22f0e1d"},
                    lose_the_last_gradient),
      with_programs({"schedule_gradient_added_twice", "optimized",
                     "the sum of dK, dV that arrives last counts twice",
                     "Is adding a gradient idempotent?", "PaddleNLP #8740"},
                    add_a_gradient_twice),
      with_programs({"schedule_gradient_sent_unsummed", "optimized",
                     "a rank passes on only its own part of dK, dV",
                     "What does a sum hold that leaves the third rank?", "Cornstarch #77"},
                    send_gradients_before_adding),
      with_programs({"schedule_gradient_slots_swapped", "optimized",
                     "dK, dV of one step are sent in place of those of the next",
                     "Which slot does this step's sum leave from?", "BurstAttention cf429a6"},
                    swap_gradient_slots),
  };
}

}  // namespace

std::vector<Mutant> schedule_mutants() {
  std::vector<Mutant> all;
  for (const auto make : {of_chunks, of_waits, of_gradients}) {
    for (Mutant& mutant : make()) all.push_back(std::move(mutant));
  }
  return all;
}

}  // namespace ringlab::mutants
