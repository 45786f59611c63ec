// Stage 21, decode: keys and values stay where they are cached, and the few queries travel.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "stages/16_bidirectional/bidirectional.h"

namespace ringlab::stages::decode {

/// Message tags of queries, and of the states and accumulators of their answers.
inline constexpr int kQueryRows = 5, kStates = 6, kAccs = 7;

/// The answer of this rank's keys to the queries of `asker`: a part of the whole one.
template <class Element>
RowStates<Element> answer(const RankProblem<Element>& r, int asker, int step,
                          const Element* queries) {
  // [lab: answer]
  // [gap: positions]
  const Positions asked = r.q_layout.positions(asker);
  // end [gap: positions]
  RankProblem<Element> guest = r;
  guest.q.data = queries;
  guest.q.extents.tokens = asked.size();
  RowStates<Element> part(guest);
  const MaskTable mask(r.problem.mask, asked, r.memory);
  bidirectional::attend(guest, mask, bidirectional::own_chunk(r), step, part);
  return part;
  // end [lab: answer]
}

/// Messages under way. Both ends know all sizes, so that what is empty is not sent.
template <class Element>
struct Mail {
  RankProblem<Element>& r;
  std::vector<Request> posted = {};

  template <class Buffer>
  void send(int to, int tag, const Buffer& from) {
    const auto bytes = bytes_of(from.data(), std::ssize(from));
    if (!bytes.empty()) posted.push_back(r.network.post_send(to, tag, bytes));
  }
  template <class Buffer>
  void receive(int from, int tag, Buffer& to) {
    const auto bytes = writable_bytes_of(to.data(), std::ssize(to));
    if (!bytes.empty()) posted.push_back(r.network.post_receive(from, tag, bytes));
  }
  void wait() {
    for (const Request request : std::exchange(posted, {})) r.network.wait(request);
  }
};

/// Asks all other ranks at once, answers them, and merges what comes back: two exchanges, however
/// many ranks there are.
template <class Element>
void attention(RankProblem<Element>& r) {
  const std::span own(r.q.data, static_cast<std::size_t>(r.q.extents.size()));
  const std::int64_t query = r.q.extents.batch * r.q.extents.heads * r.q.extents.channels;
  std::vector<MeteredBuffer<Element>> queries;
  std::vector<RowStates<Element>> given, taken;
  Mail<Element> mail{r};
  r.work.hold_kv((r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)});
  // [lab: ask]
  for (int hop = 1; hop < r.ranks(); ++hop) {
    const int asker = r.rank_at(-hop);
    queries.emplace_back(r.memory, query * r.q_layout.positions(asker).size());
    // [gap: ask]
    mail.receive(asker, kQueryRows, queries.back());
    mail.send(r.rank_at(hop), kQueryRows, own);
    // end [gap: ask]
  }
  mail.wait();
  // end [lab: ask]
  // [lab: answers]
  // [gap: own]
  RowStates<Element> whole = answer(r, r.rank(), 0, own.data());
  // end [gap: own]
  for (int hop = 1; hop < r.ranks(); ++hop) {
    const int asker = r.rank_at(-hop), asked = r.rank_at(hop);
    given.push_back(answer(r, asker, hop, queries[static_cast<std::size_t>(hop - 1)].data()));
    taken.emplace_back(r);
    // [gap: answers]
    mail.send(asker, kStates, given.back().states);
    mail.send(asker, kAccs, given.back().accs);
    mail.receive(asked, kStates, taken.back().states);
    mail.receive(asked, kAccs, taken.back().accs);
    // end [gap: answers]
  }
  mail.wait();
  // [gap: merge]
  for (const RowStates<Element>& part : taken) merge::merge(whole, part, r.problem.shape.v_dim);
  // end [gap: merge]
  merge::finish(r, whole);
  // end [lab: answers]
}

/// One rescale per tile of every chunk, and one per merge.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options) + options.ranks - 1);
}

inline constexpr StageFacts kFacts{
    .idea = "K and V stay where they are cached; the few queries travel, and partial answers home.",
    .costs = decode_costs,
    .queries_travel = true};

}  // namespace ringlab::stages::decode
