#include "property_tests/diagnosis/events/event_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "optimized/transport/message_flow.h"
#include "property_tests/diagnosis/events/event_suspects.h"
#include "property_tests/laws/trial.h"
#include "stages/common/chunk_slot.h"

namespace ringlab::verify {
namespace {

std::string tag_name(int tag) {
  constexpr std::array kNames = {"keys", "values", "positions", "gradients of keys",
                                 "gradients of values"};
  const auto at = static_cast<std::size_t>(tag);
  if (at < kNames.size()) return kNames[at];
  return fmt::format("tag {}", tag);
}

std::string chunk_name(const std::optional<int>& owner) {
  return owner ? fmt::format("chunk {}", *owner) : "another chunk";
}

bool is_of_chunk(const RecordedMessage& message) {
  return message.call.tag == stages::kKeys || message.call.tag == stages::kValues;
}

/// A finding, and the index of its call among the calls of its rank.
struct Seen {
  std::size_t at = kNever;
  EventFinding finding;
};

void keep_first(std::optional<Seen>& first, std::size_t at, const Suspect& suspect,
                const std::string& where) {
  if (!first || at < first->at) first = Seen{at, {suspect, where}};
}

/// The other messages of the chunk that `receive` belongs to.
std::vector<const RecordedMessage*> same_chunk(const MessageFlow& flow,
                                               const RecordedMessage& receive) {
  std::vector<const RecordedMessage*> others;
  for (const RecordedMessage& other : flow.receives(receive.rank)) {
    const bool same = other.owner && other.owner == receive.owner &&
                      other.call.peer == receive.call.peer && other.call.tag != receive.call.tag;
    if (same) others.push_back(&other);
  }
  return others;
}

bool some_arrived(const std::vector<const RecordedMessage*>& messages, std::size_t before) {
  return std::ranges::any_of(messages,
                             [&](const RecordedMessage* one) { return one->waited < before; });
}

void look_at_slots(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  for (const RecordedMessage& receive : flow.receives(rank)) {
    for (const RecordedMessage& send : flow.sends(rank)) {
      if (send.at > receive.at || !is_open(send, receive.at) || !overlap(send.call, receive.call)) {
        continue;
      }
      const bool is_slot = is_of_chunk(receive) && is_of_chunk(send);
      keep_first(first, receive.at, is_slot ? kSlotTakenWhileSent : kMemoryTakenWhileSent,
                 is_slot
                     ? fmt::format("rank {} receives {} of {} into the slot from which those of "
                                   "{} are still being sent to rank {}",
                                   rank, tag_name(receive.call.tag), chunk_name(receive.owner),
                                   chunk_name(send.owner), send.call.peer)
                     : fmt::format("rank {} receives {} of rank {} into memory from which {} is "
                                   "still being sent to rank {}",
                                   rank, tag_name(receive.call.tag), receive.call.peer,
                                   tag_name(send.call.tag), send.call.peer));
    }
    for (const RecordedMessage& before : flow.receives(rank)) {
      if (before.at >= receive.at || !is_open(before, receive.at) ||
          !overlap(before.call, receive.call)) {
        continue;
      }
      const bool one_slot = before.call.begin == receive.call.begin;
      const bool one_chunk = before.owner && before.owner == receive.owner;
      keep_first(
          first, receive.at,
          !one_slot   ? kPlacesOverlap
          : one_chunk ? kPartsInOnePlace
                      : kChunksInOneSlot,
          fmt::format("rank {} receives {} of rank {} into a place that overlaps the one for those "
                      "of rank {}",
                      rank, tag_name(receive.call.tag), receive.call.peer, before.call.peer));
    }
  }
}

/// The number of `wanted` among the operations with its tag and peer, from 0.
std::size_t number_of(const std::vector<RecordedMessage>& operations,
                      const RecordedMessage& wanted) {
  return static_cast<std::size_t>(
      std::ranges::count_if(operations, [&](const RecordedMessage& one) {
        return one.call.tag == wanted.call.tag && one.call.peer == wanted.call.peer &&
               one.at < wanted.at;
      }));
}

/// True when `arriving` is a later chunk than the one that `send` has to pass on: in a ring a rank
/// sends its own chunk first and then each chunk that came.
bool comes_too_early(const MessageFlow& flow, const RecordedMessage& send,
                     const RecordedMessage& arriving) {
  return number_of(flow.receives(send.rank), arriving) >= number_of(flow.sends(send.rank), send);
}

void look_at_sends(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  for (const RecordedMessage& send : flow.sends(rank)) {
    for (const RecordedMessage& receive : flow.receives(rank)) {
      if (receive.at > send.at || !is_open(receive, send.at) || !overlap(send.call, receive.call)) {
        continue;
      }
      const bool overwritten = comes_too_early(flow, send, receive);
      const bool part = some_arrived(same_chunk(flow, receive), send.at);
      keep_first(
          first, send.at,
          overwritten ? kChunksInOneSlot
          : part      ? kPartAwaited
                      : kPassedOnBeforeArrival,
          fmt::format("rank {} sends {} to rank {} out of a buffer into which those of {} are "
                      "still being received",
                      rank, tag_name(send.call.tag), send.call.peer, chunk_name(receive.owner)));
    }
  }
  if (!flow.ranks()[static_cast<std::size_t>(rank)].ended) return;
  for (const RecordedMessage& send : flow.sends(rank)) {
    if (send.waited != kNever) continue;
    keep_first(first, flow.ranks()[static_cast<std::size_t>(rank)].calls.size(), kSendsNeverAwaited,
               fmt::format("rank {} ends without having waited for {} of {} that it sends to "
                           "rank {}",
                           rank, tag_name(send.call.tag), chunk_name(send.owner), send.call.peer));
  }
}

/// Looks for values that are sent out of the memory of the keys sent before them.
void look_at_values(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  const RecordedMessage* keys = nullptr;
  for (const RecordedMessage& send : flow.sends(rank)) {
    if (send.call.tag == stages::kKeys) keys = &send;
    const bool is_it = keys && send.call.tag == stages::kValues && send.call.bytes > 0 &&
                       send.call.begin == keys->call.begin;
    if (!is_it) continue;
    keep_first(
        first, send.at, kKeysSentAsValues,
        fmt::format("rank {} sends the memory of keys to rank {} as values", rank, send.call.peer));
  }
}

/// Looks for a receive into the place of a chunk before the rank has computed on that chunk.
void look_at_overwriting(const MessageFlow& flow, const std::vector<const RecordedMessage*>& chunk,
                         std::size_t computed, std::optional<Seen>& first) {
  for (const RecordedMessage* message : chunk) {
    for (const RecordedMessage& receive : flow.receives(message->rank)) {
      const bool between = message->at < receive.at && receive.at < computed;
      if (!between || !overlap(receive.call, message->call)) continue;
      keep_first(
          first, receive.at, kChunksInOneSlot,
          fmt::format("rank {} receives {} of {} into the slot of {}, with which it computes "
                      "only later",
                      message->rank, tag_name(receive.call.tag), chunk_name(receive.owner),
                      chunk_name(message->owner)));
    }
  }
}

/// True when a rank computes on its own chunk and all that come: step n is then that of message n.
bool computes_on_all(const MessageFlow& flow, int rank) {
  const auto blocks = std::ranges::count_if(
      flow.ranks()[static_cast<std::size_t>(rank)].calls,
      [](const auto& call) { return call.kind == CallKind::compute && !call.backward; });
  const auto chunks = std::ranges::count(flow.receives(rank), stages::kKeys,
                                         [](const RecordedMessage& one) { return one.call.tag; });
  return blocks > chunks;
}

// Blocks of step 0 are computed from the rank's own memory, or noted before anything is sent. A
// rank may name the wrong chunk, so its messages have to fit the block by number and by owner.
void look_at_computes(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  const std::vector<NetworkCall>& calls = flow.ranks()[static_cast<std::size_t>(rank)].calls;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const NetworkCall& block = calls[at];
    if (block.kind != CallKind::compute || block.backward || block.hop == 0) continue;
    std::vector<const RecordedMessage*> by_number, messages, missing;
    for (const RecordedMessage& receive : flow.receives(rank)) {
      const std::size_t number = number_of(flow.receives(rank), receive);
      if (receive.call.tag > stages::kPositions ||
          number + 1 != static_cast<std::size_t>(block.hop)) {
        continue;
      }
      by_number.push_back(&receive);
      if (receive.owner != block.owner) continue;
      messages.push_back(&receive);
      if (is_open(receive, at)) missing.push_back(&receive);
    }
    look_at_overwriting(flow, computes_on_all(flow, rank) ? by_number : messages, at, first);
    if (missing.empty()) continue;
    const bool part = missing.size() < messages.size();
    keep_first(first, at, part ? kPartAwaited : kComputedBeforeArrival,
               fmt::format("rank {} computes with chunk {} at step {} and has not waited for its "
                           "{} from rank {}",
                           rank, block.owner, block.hop, tag_name(missing.front()->call.tag),
                           missing.front()->call.peer));
  }
}

/// Compares the owners of the n-th messages of keys and of positions, which belong together.
void look_at_positions(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  std::vector<const RecordedMessage*> keys, positions;
  for (const RecordedMessage& send : flow.sends(rank)) {
    if (send.call.tag == stages::kKeys) keys.push_back(&send);
    if (send.call.tag == stages::kPositions) positions.push_back(&send);
  }
  if (keys.size() != positions.size()) return;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const std::optional<int> of_keys = keys[n]->owner, of_positions = positions[n]->owner;
    if (!of_keys || !of_positions || of_keys == of_positions) continue;
    keep_first(first, positions[n]->at, of_positions == rank ? kOwnPositions : kForeignPositions,
               fmt::format("rank {} sends keys of chunk {} with positions of chunk {} to rank {}",
                           rank, *of_keys, *of_positions, positions[n]->call.peer));
  }
}

/// Looks for a rank that waits for a message which was sent to another rank that did not want it.
void look_at_the_end(const MessageFlow& flow, int rank, std::optional<Seen>& first) {
  const RankCalls& mine = flow.ranks()[static_cast<std::size_t>(rank)];
  if (mine.ended) return;
  for (const RecordedMessage& receive : flow.receives(rank)) {
    if (receive.waited != kNever || receive.other_end) continue;
    for (const RecordedMessage& send : flow.sends(receive.call.peer)) {
      if (send.other_end || send.call.tag != receive.call.tag || send.call.peer == rank) continue;
      keep_first(first, mine.calls.size(), kSentElsewhere,
                 fmt::format("rank {} waits for {} from rank {}, which sends them to rank {}", rank,
                             tag_name(receive.call.tag), receive.call.peer, send.call.peer));
      if (first->at == mine.calls.size()) first->finding.waits_for_ever = true;
    }
  }
}

int blocks_before(const RankCalls& rank, std::size_t at) {
  if (at < rank.calls.size() && rank.calls[at].backward) return -1;
  const auto end = rank.calls.begin() + static_cast<std::ptrdiff_t>(at);
  return static_cast<int>(std::count_if(rank.calls.begin(), end, [](const NetworkCall& call) {
    return call.kind == CallKind::compute && !call.backward;
  }));
}

}  // namespace

std::optional<EventFinding> first_event_mistake(const std::vector<RankCalls>& ranks) {
  const MessageFlow flow(ranks);
  std::optional<Seen> first;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    look_at_slots(flow, rank, first);
    look_at_sends(flow, rank, first);
    look_at_values(flow, rank, first);
    look_at_computes(flow, rank, first);
    look_at_positions(flow, rank, first);
    look_at_the_end(flow, rank, first);
    if (first && first->finding.rank < 0) {
      first->finding.rank = rank;
      first->finding.step = blocks_before(ranks[static_cast<std::size_t>(rank)], first->at);
    }
  }
  if (!first) return std::nullopt;
  return first->finding;
}

std::optional<EventFinding> found_by_events(const Subject& subject,
                                            const std::vector<Case>& cases) {
  if (!subject.can.has(Ability::many_ranks) || !subject.can.has(Ability::messages))
    return std::nullopt;
  for (const Case& c : cases) {
    if (c.ranks == 1) continue;
    const RecordedRun run;
    try {
      Trial trial = make_trial(c);
      trial.options.transport = TransportKind::simulated;
      const Tensor<double> dout = make_dout(c);
      AttentionInput input = trial.input();
      if (subject.can.has(Ability::backward)) input.dout = dout.view();
      run_checked(subject, input, trial.options);
    } catch (const std::exception&) {
      // The calls recorded until then are judged.
    }
    std::optional<EventFinding> found = first_event_mistake(run.ranks());
    if (!found) continue;
    if (c.ranks != cases.front().ranks) found->where += fmt::format(" (of {} ranks)", c.ranks);
    return found;
  }
  return std::nullopt;
}

std::vector<Suspect> event_suspects() {
  return {kPartsInOnePlace,       kKeysSentAsValues,  kSlotTakenWhileSent,    kMemoryTakenWhileSent,
          kChunksInOneSlot,       kPlacesOverlap,     kComputedBeforeArrival, kPartAwaited,
          kPassedOnBeforeArrival, kSendsNeverAwaited, kSentElsewhere,         kOwnPositions,
          kForeignPositions};
}

}  // namespace ringlab::verify
