// Stage 00, attention: what is computed, row by row, and the pieces that every stage is made of.
#pragma once

#include "reference/core/shards.h"
#include "reference/core/state.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/costs.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::attention {

/// One thread per query row; one block per `threads` rows of one head.
template <class Element>
struct Kernel {
  using Real = Accumulator<Element>;
  static constexpr Real kMasked = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  MaskRows mask;
  Array<const Element> q, k, v;  // (heads, queries | keys, channels); K/V heads for k and v
  Array<Real> scores;            // (heads, queries, keys): own rows of the N x N matrix
  Array<Element> out;            // (heads, queries, v_dim)
  Array<Real> lse;               // (heads, queries)

  template <class Block>
  // NOLINTNEXTLINE(readability-function-size): one kernel, read from top to bottom
  RINGLAB_HD void operator()(Block& block) const {
    const RowTile tile = shape.row_tile(block.index(), block.threads());
    const std::int64_t kv_head = tile.head / shape.group;  // heads of a group are neighbours
    const Element* keys = k.data + kv_head * shape.keys * shape.head_dim;
    const Element* values = v.data + kv_head * shape.keys * shape.v_dim;
    Real* acc_rows = block.template shared<Real>(block.threads() * shape.v_dim);
    auto row_sums = block.template per_thread<Real>();

    // [lab: row]
    block.each([&](int thread) {  // scores of the row, -inf where the mask forbids
      if (thread >= tile.rows) return;
      const std::int64_t row = tile.first + thread, at = tile.head * shape.queries + row;
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        // [gap: scores]
        Real& score = scores[at * shape.keys + key];
        score = kMasked;
        if (!mask.allows(row, key)) continue;
        // end [gap: scores]
        score = Real(shape.scale) * dot<Real>(q.data + at * shape.head_dim,
                                              keys + key * shape.head_dim, shape.head_dim);
      }
    });
    block.each([&](int thread) {  // softmax of the row, not yet divided by its sum
      if (thread >= tile.rows) return;
      const std::int64_t at = tile.head * shape.queries + tile.first + thread;
      Real* score = scores.data + at * shape.keys;
      Real row_max = kMasked;
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        if (score[key] > row_max) row_max = score[key];
      }
      Real row_sum = 0;
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        score[key] = rescale_factor(score[key], row_max);  // e^(score - row_max), masked: 0
        row_sum += score[key];
      }
      row_sums[thread] = row_sum;
      // [gap: lse]
      lse[at] = row_sum == 0 ? kMasked : row_max + std::log(row_sum);
      // end [gap: lse]
    });
    block.each([&](int thread) {  // weighted sum of the values; masked values are never read
      if (thread >= tile.rows) return;
      const std::int64_t at = tile.head * shape.queries + tile.first + thread;
      Real* acc = acc_rows + thread * shape.v_dim;
      for (std::int64_t c = 0; c < shape.v_dim; ++c) acc[c] = 0;
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        const Real weight = scores[at * shape.keys + key];
        // [gap: values]
        if (weight != 0) add_row(acc, weight, values + key * shape.v_dim, shape.v_dim);
        // end [gap: values]
      }
      const bool sees_nothing = row_sums[thread] == 0;
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        // [gap: out]
        const Real value = sees_nothing ? Real(0) : acc[c] / row_sums[thread];
        // end [gap: out]
        out[at * shape.v_dim + c] = static_cast<Element>(value);
      }
    });
    // end [lab: row]
  }

  template <class Visit>
  void for_each_array(Visit visit) {
    mask.for_each_array(visit);
    visit(q), visit(k), visit(v), visit(scores), visit(out), visit(lse);
  }
};

/// Keys and values of all tokens: row j is token j.
template <class Element>
struct Whole {
  MeteredBuffer<Element> k, v;  // (batch, kv_heads, tokens, channels)

  explicit Whole(RankProblem<Element>& r)
      : k(r.memory, r.problem.shape.k().size()), v(r.memory, r.problem.shape.v().size()) {
    r.work.hold_kv(bytes());
  }
  std::int64_t bytes() const { return k.bytes() + v.bytes(); }
};

/// Writes the rows of a chunk, which lie densely at `rows`, to the tokens that they are of.
template <class Element>
void put_in_order(const Positions& tokens, const Element* rows, const TensorView<Element>& whole) {
  const Extents& e = whole.extents;
  for (std::int64_t head = 0; head < e.batch * e.heads; ++head) {
    for (std::int64_t i = 0; i < tokens.size(); ++i, rows += e.channels) {
      copy_row(rows_of(whole, head, tokens[i], 1).data(), rows, e.channels);
    }
  }
}

/// Rank 0's part: receives every rank's chunk, and sends all of them to everybody.
template <class Element>
void collect(RankProblem<Element>& r, Whole<Element>& whole) {
  const Shape& s = r.problem.shape;
  ChunkSlot<Element> chunk(r);
  r.work.hold_kv(whole.bytes() + chunk.bytes());
  chunk.fill_with_own(r);
  // [lab: collect]
  // [gap: collect]
  for (int owner = 0; owner < r.ranks(); ++owner) {
    if (owner > 0) {
      chunk.owner = owner;
      const Request keys = r.network.post_receive(owner, kKeys, chunk.k_bytes(r));
      const Request values = r.network.post_receive(owner, kValues, chunk.v_bytes(r));
      r.network.wait(keys), r.network.wait(values);
    }
    const Positions& tokens = r.kv_layout.positions(owner);
    put_in_order(tokens, chunk.k.data(), dense_view(whole.k.data(), s.k()));
    put_in_order(tokens, chunk.v.data(), dense_view(whole.v.data(), s.v()));
  }
  // end [gap: collect]
  for (int rank = 1; rank < r.ranks(); ++rank) {
    r.network.wait(r.network.post_send(rank, kKeys, bytes_of(whole.k.data(), whole.k.size())));
    r.network.wait(r.network.post_send(rank, kValues, bytes_of(whole.v.data(), whole.v.size())));
  }
  // end [lab: collect]
}

/// The part of all others: each hands in its chunk and gets everything.
template <class Element>
void hand_in(RankProblem<Element>& r, Whole<Element>& whole) {
  r.network.wait(r.network.post_send(0, kKeys, bytes_of(r.k.data, r.k.extents.size())));
  r.network.wait(r.network.post_send(0, kValues, bytes_of(r.v.data, r.v.extents.size())));
  const auto k = writable_bytes_of(whole.k.data(), whole.k.size());
  const auto v = writable_bytes_of(whole.v.data(), whole.v.size());
  r.network.wait(r.network.post_receive(0, kKeys, k));
  r.network.wait(r.network.post_receive(0, kValues, v));
}

/// Notes that every chunk was computed on, all at once.
template <class Element>
void note_all_chunks(RankProblem<Element>& r) {
  const Positions& queries = r.q_layout.positions(r.rank());
  for (int owner = 0; owner < r.ranks(); ++owner) {
    r.work.visit(owner, 0, r.problem.mask.count(queries, r.kv_layout.positions(owner)));
  }
}

template <class Element>
void attention(RankProblem<Element>& r) {
  Whole<Element> all(r);
  r.rank() == 0 ? collect(r, all) : hand_in(r, all);
  const Positions& queries = r.q_layout.positions(r.rank());
  const KernelShape shape = kernel_shape(r, r.problem.shape.kv_tokens);
  const MaskTable mask(r.problem.mask, queries, r.memory);
  const auto positions = position_array(Positions({{0, shape.keys, 1}}), r.memory);
  MeteredBuffer<Accumulator<Element>> scores(r.memory, shape.heads * shape.queries * shape.keys);
  launch(r, shape.blocks(r.options.tile_queries),
         Kernel<Element>{shape, mask.rows(positions), array_of(r.q), array_of(all.k),
                         array_of(all.v), array_of(scores), array_of(r.out), array_of(r.lse)});
  note_all_chunks(r);
}

/// Two passes: nothing is ever rescaled; one is the least a profile states.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, 1);
}

/// Everybody hands in its chunk; rank 0 sends all tokens to each of the others.
inline StatedCosts costs(const Problem& problem, const RunOptions& options, int rank) {
  const std::int64_t tokens = problem.shape.kv_tokens, others = options.ranks - 1;
  const std::int64_t sent = rank == 0 ? others * tokens : chunk_tokens(problem, options, rank);
  const std::int64_t held = rank == 0 ? tokens + largest_chunk(problem, options) : tokens;
  const std::int64_t bytes = kv_bytes_per_token(problem);
  return {.sent_bytes = sent * bytes,
          .sent_messages = 2 * (rank == 0 ? others : 1),
          .peak_kv_bytes = held * bytes};
}

inline constexpr StageFacts kFacts{
    .idea = "Attention row by row, every score written down; rank 0 hands out all keys and values.",
    .costs = costs};

}  // namespace ringlab::stages::attention
