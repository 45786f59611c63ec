// Counts of messages, visits and memory, and answers that delays may not change.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "property_tests/laws/ranks/distribution.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// Holds because a rank waits for what it needs before it uses it. Finds missing waits, receives
/// that match by luck, and sends that must be buffered to go on.
LawResult delays_change_nothing(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  RunOptions options = trial.options;
  options.transport = TransportKind::threads;
  options.rendezvous = false;
  const AttentionOutput threads = subject.run(trial.input(), options).output;
  options.transport = TransportKind::simulated;
  std::vector<LawResult> results;
  for (std::uint64_t delays = 0; delays < 4; ++delays) {
    options.delay_seed = c.delay_seed + delays;
    options.rendezvous = delays == 3;
    const AttentionOutput simulated = subject.run(trial.input(), options).output;
    results.push_back(same_rows(fmt::format("simulated delays of seed {}", options.delay_seed),
                                simulated, threads));
  }
  return all_held(results);
}

/// Holds because threads of a phase write different memory. Finds missing barriers in tile
/// programs.
LawResult thread_order_changes_nothing(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  RunOptions shuffled_threads = trial.options;
  shuffled_threads.thread_order_seed = c.seed + 1;
  return same_rows("threads of a phase in another order",
                   subject.run(trial.input(), shuffled_threads).output,
                   subject.run(trial.input(), trial.options).output);
}

/// The fault in the visits that one rank reports; empty when there is none.
std::string wrong_visits(const RankStats& stats, const Positions& queries, const Layout& keys,
                         const Mask& mask, bool skips) {
  std::set<int> owners;
  for (const Visit& visit : stats.visits) {
    if (visit.owner < 0 || visit.owner >= keys.ranks()) return "there is no such owner";
    if (!owners.insert(visit.owner).second) {
      return fmt::format("the chunk of rank {} was noted as computed twice", visit.owner);
    }
    const Positions& held = keys.positions(visit.owner);
    const std::int64_t needed = mask.count(queries, held);
    if (skips && needed == 0) {
      return fmt::format("the chunk of rank {} was computed, and no query sees a key of it",
                         visit.owner);
    }
    if (visit.pairs < needed || visit.pairs > queries.size() * held.size()) {
      return fmt::format("{} pairs computed against the chunk of rank {}, {} allowed", visit.pairs,
                         visit.owner, needed);
    }
  }
  for (int owner = 0; owner < keys.ranks(); ++owner) {
    if (!owners.contains(owner) && mask.count(queries, keys.positions(owner)) > 0) {
      return fmt::format("the chunk of rank {} was never noted as computed", owner);
    }
  }
  return {};
}

std::string needs_queries_that_stay(const Subject& subject) {
  return subject.can.has(Ability::queries_travel) ? "its ranks compute rows of others" : "";
}

/// Holds by the definition of the sum over keys. Finds answers that are right by luck: a chunk that
/// is computed twice with weights that cancel, or work on chunks out of sight.
LawResult every_chunk_is_visited_once(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const Layout queries = make_layout(trial.options, c.shape.q_tokens, {});
  const Layout keys = make_layout(trial.options, c.shape.kv_tokens, {});
  const RunResult run = subject.run(trial.input(), trial.options);
  for (int rank = 0; rank < c.ranks; ++rank) {
    const std::string wrong =
        wrong_visits(run.ranks[static_cast<std::size_t>(rank)], queries.positions(rank), keys,
                     trial.problem.mask, subject.can.has(Ability::skips_empty_blocks));
    if (!wrong.empty()) return broken(fmt::format("rank {}: {}", rank, wrong));
  }
  return held();
}

/// The bytes of K and V that a rank of a ring passes on: all chunks but its receiver's own.
struct PassedOn {
  std::int64_t payload = 0;
  std::int64_t positions = 0;  ///< the most that their positions may add
};

/// Places for chunks beside the own one; a plain ring swaps the own chunk with a second one.
int slots_of(const Subject& subject, const Case& c) {
  return subject.can.has(Ability::prefetches) ? std::min(c.slots, c.ranks - 1) : 1;
}

/// Owners of the chunks that a rank sends, one per hop. With a single slot beside the own chunk,
/// a chunk cannot be passed on while the next one arrives: everybody sends its own to everybody.
std::vector<int> owners_sent(const Subject& subject, const Case& c, int rank) {
  if (subject.can.has(Ability::prefetches) && slots_of(subject, c) == 1) {
    return std::vector<int>(static_cast<std::size_t>(c.ranks - 1), rank);
  }
  const int step = c.direction == RingDirection::next ? 1 : -1;
  const int receiver = (rank + step + c.ranks) % c.ranks;
  std::vector<int> owners;
  for (int owner = 0; owner < c.ranks; ++owner) {
    if (owner != receiver) owners.push_back(owner);
  }
  return owners;
}

PassedOn passed_on(const Case& c, const Layout& keys, const std::vector<int>& owners) {
  const std::int64_t token_bytes = c.shape.batch * c.shape.kv_heads *
                                   (c.shape.head_dim + c.shape.v_dim) * dtype_info(c.dtype).bytes;
  PassedOn bytes;
  for (const int owner : owners) {
    const Positions& held = keys.positions(owner);
    bytes.payload += held.size() * token_bytes;
    bytes.positions += static_cast<std::int64_t>(held.runs().size() * sizeof(PositionRun));
  }
  return bytes;
}

std::string fault(const char* what, std::int64_t got, std::int64_t due) {
  return got == due ? "" : fmt::format("{} {}, and its closed form is {}", got, what, due);
}

/// The difference of a rank's traffic from what the subject states; empty when there is none.
std::string other_than_stated(const RankStats& stats, const StatedCosts& stated) {
  for (const std::string& one :
       {fault("bytes sent", stats.sent_bytes, stated.sent_bytes),
        fault("messages sent", stats.sent_messages, stated.sent_messages),
        fault("exchanges made", stats.exchanges, stated.exchanges.value_or(stats.exchanges)),
        fault("messages sent to other nodes", stats.node_messages,
              stated.node_messages.value_or(stats.node_messages))}) {
    if (!one.empty()) return one;
  }
  return "";
}

/// Holds because a ring sends each chunk to every rank but its owner, once. Finds chunks that make
/// one hop too many, and messages that nobody waits for.
LawResult messages_are_conserved(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const RunResult run = subject.run(trial.input(), trial.options);
  const Layout keys = make_layout(trial.options, c.shape.kv_tokens, {});
  if (run.leftover_messages != 0) {
    return broken(fmt::format("{} messages were sent and never received, or the other way round",
                              run.leftover_messages));
  }
  RankStats all;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const RankStats& stats = run.ranks[static_cast<std::size_t>(rank)];
    all.sent_bytes += stats.sent_bytes;
    all.received_bytes += stats.received_bytes;
    all.sent_messages += stats.sent_messages;
    all.received_messages += stats.received_messages;
    const std::string wrong =
        subject.costs ? other_than_stated(stats, subject.costs(trial.problem, trial.options, rank))
                      : "";
    if (!wrong.empty()) return broken(fmt::format("rank {}: {}", rank, wrong));
    const PassedOn expected = passed_on(c, keys, owners_sent(subject, c, rank));
    const std::int64_t extra = stats.sent_bytes - expected.payload;
    if (subject.can.has(Ability::ring_traffic) && (extra < 0 || extra > expected.positions)) {
      return broken(fmt::format("rank {} sent {} bytes; its chunks are {}, their positions {}",
                                rank, stats.sent_bytes, expected.payload, expected.positions));
    }
  }
  if (all.sent_bytes == all.received_bytes && all.sent_messages == all.received_messages) {
    return held();
  }
  return broken(fmt::format("{} bytes in {} messages sent, {} in {} received", all.sent_bytes,
                            all.sent_messages, all.received_bytes, all.received_messages));
}

/// Finds rings that gather all chunks before they compute, and figures of memory that are none.
LawResult own_chunk_and_slots_are_enough(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const RunResult run = subject.run(trial.input(), trial.options);
  const std::int64_t token_bytes = c.shape.batch * c.shape.kv_heads *
                                   (c.shape.head_dim + c.shape.v_dim) * dtype_info(c.dtype).bytes;
  const int chunks = 1 + slots_of(subject, c);
  const std::int64_t allowed =
      chunks * make_layout(trial.options, c.shape.kv_tokens, {}).largest_chunk() * token_bytes;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const std::int64_t held_bytes = run.ranks[static_cast<std::size_t>(rank)].peak_kv_bytes;
    if (held_bytes > allowed) {
      return broken(fmt::format("{} bytes of K and V held at once; {} chunks are {}", held_bytes,
                                chunks, allowed));
    }
    if (!subject.costs) continue;
    const StatedCosts stated = subject.costs(trial.problem, trial.options, rank);
    const std::string wrong =
        fault("bytes of K and V noted as held", held_bytes, stated.peak_kv_bytes);
    if (!wrong.empty()) return broken(fmt::format("rank {}: {}", rank, wrong));
  }
  return held();
}

}  // namespace

std::vector<Law> traffic_laws() {
  return {
      {.id = "P70",
       .name = "the_order_of_the_threads_of_a_block_does_not_matter",
       .statement = "Threads between two barriers may run in any order: the same bits.",
       .exact = true,
       .shape_case = with_tokens,
       .check = thread_order_changes_nothing,
       .keeps_modifiers = true},
      {.id = "P65",
       .name = "delays_of_messages_change_nothing",
       .statement = "Any delays and interleavings of the ranks give the bits of undelayed threads.",
       .exact = true,
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks},
       .check = delays_change_nothing,
       .keeps_modifiers = true},
      {.id = "P67",
       .name = "every_rank_computes_each_chunk_exactly_once",
       .statement =
           "Each (query chunk, key chunk) pair that holds an allowed pair is computed, and noted, "
           "once; who skips the others computes none of them.",
       .exact = true,
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks, Ability::counts_traffic},
       .not_applicable = needs_queries_that_stay,
       .check = every_chunk_is_visited_once,
       .keeps_modifiers = true},
      {.id = "P68",
       .name = "what_is_sent_is_received_and_is_as_much_as_the_ring_needs",
       .statement = "Sends equal receives, nothing is left over, and what is sent has its closed "
                    "forms: bytes, "
                    "messages, exchanges.",
       .exact = true,
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks, Ability::counts_traffic},
       .check = messages_are_conserved},
      {.id = "P72",
       .name = "a_ring_holds_its_chunk_and_its_slots_at_most",
       .statement =
           "A rank of a ring holds no more K/V than its slots beside its own chunk, without slots "
           "two, and notes how much.",
       .exact = true,
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks, Ability::counts_traffic, Ability::ring_traffic},
       .check = own_chunk_and_slots_are_enough},
  };
}

}  // namespace ringlab::verify
