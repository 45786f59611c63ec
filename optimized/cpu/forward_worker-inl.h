// All queries against one K/V chunk, tile by tile. Included once per target.
#if defined(RINGLAB_CPU_FORWARD_WORKER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_FORWARD_WORKER_INL_H_
#undef RINGLAB_CPU_FORWARD_WORKER_INL_H_
#else
#define RINGLAB_CPU_FORWARD_WORKER_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/modifiers/tile_modifiers-inl.h"
#include "optimized/cpu/row_shares.h"
#include "optimized/cpu/tile_memory-inl.h"
#include "optimized/cpu/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// A worker on some tiles of queries of one head against all keys of a block: they share each block
/// of keys that is read, which stays in the first-level cache (FlashAttention-2, Dao 2023, section
/// 3.2: the loop by queries).
template <class Element>
class ForwardWorker {
 public:
  using Real = Accumulator<Element>;

  ForwardWorker(const Block<Element>& block, const std::vector<std::int64_t>& positions)
      : block_(block),
        positions_(positions),
        channels_{block.q.extents.channels, block.v.extents.channels,
                  static_cast<Real>(in_base_2(block.scale))},
        keys_(block.tiles.keys, channels_.head_dim),
        values_(block.tiles.keys, channels_.v_dim),
        finite_(static_cast<std::size_t>(key_blocks(block.keys, block.tiles.keys))),
        scores_(aligned_array<Real>(block.tiles.keys * tile_width<Real>())) {
    for (std::int64_t i = 0; i < tiles_of(block); ++i) {
      tiles_.emplace_back(channels_);
      modifiers_.emplace_back(block);
    }
  }

  /// Tiles of a worker, and the rows they hold.
  static std::int64_t tiles_of(const Block<Element>& block) {
    return tiles_for<Real>(block.tiles.queries, block.q.extents.tokens);
  }
  static std::int64_t rows_of(const Block<Element>& block) {
    return tiles_of(block) * tile_width<Real>();
  }

  /// Some rows of one query head, rows_of() at most.
  void run(std::int64_t head, const RowRange& group, SoftmaxState<Real>* states, Real* accs) {
    const std::int64_t first = group.first, count = group.last - group.first;
    const Extents &q = block_.q.extents, &k = block_.k.extents, &v = block_.v.extents;
    const std::int64_t kv_head = head / (q.heads / k.heads), width = tile_width<Real>();
    const std::int64_t* const positions = positions_.data() + first;
    const Element* const rows = block_.q.data + (head * q.tokens + first) * q.channels;
    states += head * q.tokens + first;
    accs += (head * q.tokens + first) * v.channels;
    used_ = static_cast<std::size_t>((count + width - 1) / width);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      tiles_[i].load(rows + row * q.channels, states + row, accs + row * v.channels,
                     positions + row, block_.mask, std::min(width, count - row));
      modifiers_[i].load(head, positions + row, tiles_[i].count());
    }
    turn_to(kv_head);
    take_in_runs(block_.k.data + kv_head * k.tokens * k.channels,
                 block_.v.data + kv_head * v.tokens * v.channels, positions);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      tiles_[i].store(states + row, accs + row * v.channels);
    }
  }

 private:
  // Forgets which values are finite when the K/V head changes.
  void turn_to(std::int64_t kv_head) {
    if (kv_head == kv_head_) return;
    kv_head_ = kv_head;
    std::fill(finite_.begin(), finite_.end(), false);
  }
  void take_in_runs(const Element* k, const Element* v, const std::int64_t* positions) {
    number_ = 0;
    for (const PositionRun& run : block_.keys.runs()) {
      for (std::size_t i = 0; i < used_; ++i) tiles_[i].look_at(run);
      for (std::int64_t first = 0; first < run.count; first += block_.tiles.keys) {
        const RowRange rows{first, std::min(run.count, first + block_.tiles.keys)};
        take_in_rows(k, v, run, rows, positions);
        ++number_;
      }
      k += run.count * channels_.head_dim;
      v += run.count * channels_.v_dim;
    }
  }

  /// k, v: of the first row of the run.
  void take_in_rows(const Element* k, const Element* v, const PositionRun& run,
                    const RowRange& rows, const std::int64_t* positions) {
    bool loaded = false;
    for (std::size_t i = 0; i < used_; ++i) {
      QueryTile<Real>& tile = tiles_[i].tile();
      const RowRange part = common(rows, tile.view.some);
      if (part.empty()) continue;
      if (!loaded) load(k, v, rows);
      loaded = true;
      const std::int64_t skipped = part.first - rows.first, count = part.last - part.first;
      const KeyBlock<Real> block{keys_.raw(skipped), values_.finite(skipped), part.first, count};
      const Reach reach = reach_of(tile, block);
      const Tops<Real> tops = score_tile(i, run, block, reach, positions);
      const auto rescaling = take_in_weights(tile, tops, reach, count, scores_.get());
      modifiers_[i].drop(keys_of(run, block), scores_.get());
      add_weighted(tile, block, reach, channels_.v_dim, rescaling, scores_.get());
      values_.add_specials(skipped, count, scores_.get(), tile.acc);
    }
  }
  /// Computes the scores of tile i, mask and modifiers included; returns the largest ones.
  HWY_INLINE Tops<Real> score_tile(std::size_t i, const PositionRun& run,
                                   const KeyBlock<Real>& block, const Reach& reach,
                                   const std::int64_t* positions) {
    const QueryTile<Real>& tile = tiles_[i].tile();
    const Tops<Real> tops = score_and_find_tops(tile, block, reach, channels_, scores_.get());
    modifiers_[i].change_scores(keys_of(run, block), scores_.get());
    hide(tile, block, reach, scores_.get());
    const bool has_bits = block_.mask.has_bits();
    if (has_bits) {
      hide_bits(block_.mask, run, block,
                positions + static_cast<std::int64_t>(i) * tile_width<Real>(), tiles_[i].count(),
                scores_.get());
    }
    if (!modifiers_[i].changes_scores() && !hides_some(tile, block) && !has_bits) return tops;
    return find_tops(scores_.get(), reach);
  }
  void load(const Element* k, const Element* v, const RowRange& rows) {
    keys_.load(k + rows.first * channels_.head_dim, rows.last - rows.first);
    values_.load(v + rows.first * channels_.v_dim, rows.last - rows.first);
    const auto number = static_cast<std::size_t>(number_);
    if (!finite_[number]) finite_[number] = values_.make_finite();
  }

  const Block<Element>& block_;
  const std::vector<std::int64_t>& positions_;  ///< of the block's queries
  const Channels<Real> channels_;
  WideRows<Element> keys_, values_;  ///< of the block at hand
  std::vector<char> finite_;         ///< of each block: its values are known to be finite
  std::int64_t kv_head_ = -1;        ///< the head of finite_
  std::int64_t number_ = 0;          ///< of the block at hand
  AlignedArray<Real> scores_;        ///< (keys of a block, lanes)
  std::vector<TileMemory<Real>> tiles_;
  std::vector<TileModifiers<Real>> modifiers_;  ///< of the tiles
  std::size_t used_ = 0;
};

/// forward_block() on this target.
template <class Element>
void forward_heads(const Block<Element>& block, SoftmaxState<Accumulator<Element>>* states,
                   Accumulator<Element>* accs) {
  const std::vector<std::int64_t> positions = block.queries.to_list();
  share_out_rows(block, ForwardWorker<Element>::rows_of(block), tile_width<Accumulator<Element>>(),
                 [&] {
                   return [&, worker = ForwardWorker<Element>(block, positions)](
                              std::int64_t head, const RowRange& rows) mutable {
                     worker.run(head, rows, states, accs);
                   };
                 });
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
