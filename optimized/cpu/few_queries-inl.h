// A few queries against many keys, lanes along keys and channels: decoding. Included once per target.
//
// A tile (forward_tile-inl.h) has a lane for each query, which few queries leave empty. Here strips of
// keys are transposed, so that lanes are keys while scores are made, and channels while values are
// added up: no lane is empty, and keys and values are read once for all query heads that share them.
// Within a slice of keys every sum takes the same terms in the same order as a tile's, so the bits
// are the same. Threads take slices, which are merged in their order: one head may keep all threads
// busy (Flash-Decoding, Dao et al. 2023).
#if defined(RINGLAB_CPU_FEW_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_FEW_QUERIES_INL_H_
#undef RINGLAB_CPU_FEW_QUERIES_INL_H_
#else
#define RINGLAB_CPU_FEW_QUERIES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/few_queries.h"
#include "optimized/cpu/key_slices.h"
#include "optimized/cpu/lanes-inl.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vector_exp2-inl.h"
#include "optimized/cpu/visible_rows.h"
#include "optimized/cpu/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Blocks of keys in a slice: so many that a merge costs little beside them.
inline constexpr std::int64_t kSliceBlocks = 8;
/// Keys that are transposed together: their channels stay in the first-level cache.
inline constexpr std::int64_t kStripKeys = 64;
/// Numbers from channel to channel of a strip: a line more than its keys, so that addresses of
/// writes and of the next reads differ in their low bits.
template <class Real>
inline constexpr std::int64_t kStripStride = kStripKeys + 64 / sizeof(Real);
/// Queries that share loaded keys and values.
inline constexpr int kQueriesAtOnce = kRegisters == 32 ? 4 : 2;

/// Rows of numbers of some queries that are written, `stride` from query to query.
template <class Real>
struct QueryRows {
  Real* values;
  std::int64_t stride;
  Real* of(std::int64_t query) const { return values + query * stride; }
};

/// scores[i][j] = unit · Σ_c keys[c][j] q[i][c], c in order, of kVectors vectors of a strip's keys.
template <int kVectors, int kQueries, class Real>
HWY_INLINE void score_keys(const Real* HWY_RESTRICT keys, const Rows<Real>& q,
                           std::int64_t channels, Real unit, const QueryRows<Real>& scores) {
  const hn::ScalableTag<Real> d;
  Vector<Real> sums[kQueries][kVectors];
  for (auto& of_query : sums) {
    for (auto& sum : of_query) sum = hn::Zero(d);
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    Vector<Real> column[kVectors];
    for (int x = 0; x < kVectors; ++x) {
      column[x] = hn::Load(d, keys + c * kStripStride<Real> + x * lanes<Real>());
    }
    for (int i = 0; i < kQueries; ++i) {
      const auto factor = hn::Set(d, q.from(i).values[c]);
      for (int x = 0; x < kVectors; ++x) sums[i][x] = hn::MulAdd(factor, column[x], sums[i][x]);
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      hn::Store(hn::Mul(sums[i][x], hn::Set(d, unit)), d, scores.of(i) + x * lanes<Real>());
    }
  }
}

/// acc[i][c] = keep[i] · acc[i][c] + Σ_j weights[i][j] values[j][c], j in order, of kVectors vectors
/// of channels. Where a sum is not finite and `even_so` is false, nothing is written; returns false
/// then.
template <int kVectors, int kQueries, class D, class Element, class Real = hn::TFromD<D>>
HWY_INLINE bool add_values(D d, const Rows<Element>& values, std::int64_t count,
                           const QueryRows<Real>& weights, const Real* keep,
                           const QueryRows<Real>& accs, bool even_so) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      sums[i][x] = hn::Mul(hn::LoadU(d, accs.of(i) + x * n), hn::Set(d, keep[i]));
    }
  }
  for (std::int64_t j = 0; j < count; ++j) {
    hn::Vec<D> row[kVectors];
    for (int x = 0; x < kVectors; ++x) {
      row[x] = load_wide(d, values.from(j).values + x * n);
    }
    for (int i = 0; i < kQueries; ++i) {
      const auto weight = hn::Set(d, weights.of(i)[j]);
      for (int x = 0; x < kVectors; ++x) sums[i][x] = hn::MulAdd(weight, row[x], sums[i][x]);
    }
  }
  auto spoiled = hn::Zero(d);  // 0 times a finite number is 0
  for (const auto& of_query : sums) {
    for (const auto& sum : of_query) spoiled = hn::MulAdd(sum, hn::Zero(d), spoiled);
  }
  if (!even_so && !hn::AllTrue(d, hn::Eq(spoiled, hn::Zero(d)))) return false;
  for (int i = 0; i < kQueries; ++i) {
    for (int x = 0; x < kVectors; ++x) hn::StoreU(sums[i][x], d, accs.of(i) + x * n);
  }
  return true;
}

/// A worker on some query heads that share a K/V head.
template <class Element>
class FewQueriesWorker {
 public:
  using Real = Accumulator<Element>;

  explicit FewQueriesWorker(const Block<Element>& block)
      : block_(block),
        unit_(static_cast<Real>(in_base_2(block.scale))),
        rows_(block.q.extents.heads / block.k.extents.heads * block.q.extents.tokens),
        width_((block.tiles.keys + kStripKeys - 1) / kStripKeys * kStripKeys),
        finite_values_(block.tiles.keys, block.v.extents.channels),
        strip_(aligned_array<Real>(kStripStride<Real> * block.q.extents.channels)),
        queries_(static_cast<std::size_t>(rows_ * block.q.extents.channels)),
        scores_(aligned_array<Real>(rows_ * width_)),
        keep_(static_cast<std::size_t>(rows_)) {
    for (const std::int64_t position : block.queries.to_list()) {
      seen_.push_back(block.mask.interval(position));
    }
  }

  /// All query heads of K/V head kv_head against a slice of its keys.
  void run(std::int64_t kv_head, const KeySlice& slice, SoftmaxState<Real>* states, Real* accs) {
    const Extents &k = block_.k.extents, &v = block_.v.extents;
    const std::int64_t first = kv_head * rows_;
    widen_all(block_.q.data + first * block_.q.extents.channels, std::ssize(queries_),
              queries_.data());
    for (const KeyRows& block : slice) {
      const PositionRun& run = block_.keys.runs()[block.run];
      const RowRange part = common(block.rows, seen_by_any(run));
      if (part.empty()) continue;
      const std::int64_t row = kv_head * k.tokens + block.start + part.first;
      const std::int64_t count = part.last - part.first;
      score(block_.k.data + row * k.channels, count);
      for (std::int64_t i = 0; i < rows_; ++i) {
        const RowRange seen = common(
            part, rows_in(run, seen_[static_cast<std::size_t>(i % block_.q.extents.tokens)]));
        keep_[static_cast<std::size_t>(i)] =
            weigh({seen.first - part.first, seen.last - part.first}, count,
                  scores_.get() + i * width_, states[first + i]);
      }
      add_up(block_.v.data + row * v.channels, count, accs + first * v.channels);
    }
  }

 private:
  RowRange seen_by_any(const PositionRun& run) const {
    TileView view;
    for (const KeyInterval& keys : seen_) view.add(rows_in(run, keys), &keys == &seen_.front());
    return view.some;
  }

  /// Scores of all queries and `count` keys.
  void score(const Element* keys, std::int64_t count) {
    const std::int64_t channels = block_.k.extents.channels;
    for (std::int64_t first = 0; first < count; first += kStripKeys) {
      into_lanes(keys + first * channels, std::min(kStripKeys, count - first), channels,
                 strip_.get(), kStripKeys, kStripStride<Real>);
      std::int64_t i = 0;
      for (; i + kQueriesAtOnce <= rows_; i += kQueriesAtOnce)
        score_strip<kQueriesAtOnce>(first, i);
      for (; i < rows_; ++i) score_strip<1>(first, i);
    }
  }
  template <int kQueries>
  void score_strip(std::int64_t first, std::int64_t i) {
    constexpr int kVectors = static_cast<int>(
        std::clamp<std::int64_t>(kStripKeys / hn::MaxLanes(hn::ScalableTag<Real>()), 1, 4));
    const std::int64_t channels = block_.q.extents.channels;
    for (std::int64_t j = 0; j < kStripKeys; j += kVectors * lanes<Real>()) {
      score_keys<kVectors, kQueries, Real>(strip_.get() + j,
                                           {queries_.data() + i * channels, channels}, channels,
                                           unit_, {scores_.get() + i * width_ + first + j, width_});
    }
  }

  /// Turns scores of a query and `count` keys into weights, which are 0 where it does not see the
  /// key. Returns the factor of the earlier sums.
  static Real weigh(const RowRange& seen, std::int64_t count, Real* scores,
                    SoftmaxState<Real>& state) {
    if (seen.empty()) {
      std::fill_n(scores, count, Real(0));
      return 1;
    }
    const std::int64_t seen_count = seen.last - seen.first;
    const Real top = std::max(state.row_max, largest(scores + seen.first, seen_count));
    const Real base = top == kEmptyRowMax<Real> ? 0 : top;
    const hn::ScalableTag<Real> d;
    const Exp2<decltype(d)> exp2(d);
    const Real keep = hn::GetLane(exp2(hn::Set(d, state.row_max - base)));
    for (std::int64_t j = 0; j < seen.last; j += lanes<Real>()) {
      hn::Store(exp2(hn::Sub(hn::Load(d, scores + j), hn::Set(d, base))), d, scores + j);
    }
    std::fill_n(scores, seen.first, Real(0));
    std::fill(scores + seen.last, scores + count, Real(0));
    state.row_max = top;
    Real sum = state.row_sum * keep;
    for (std::int64_t j = seen.first; j < seen.last; ++j) sum += scores[j];
    state.row_sum = sum;
    return keep;
  }

  static Real largest(const Real* scores, std::int64_t count) {
    const hn::ScalableTag<Real> d;
    const std::int64_t n = lanes<Real>();
    Real top = kEmptyRowMax<Real>;
    std::int64_t j = 0;
    if (count >= n) {
      auto tops = hn::LoadU(d, scores);
      for (j = n; j + n <= count; j += n) tops = hn::Max(tops, hn::LoadU(d, scores + j));
      top = hn::GetLane(hn::MaxOfLanes(d, tops));
    }
    for (; j < count; ++j) top = std::max(top, scores[j]);
    return top;
  }

  /// Weights times values, into the sums of all queries.
  void add_up(const Element* values, std::int64_t count, Real* accs) {
    std::int64_t i = 0;
    for (; i + kQueriesAtOnce <= rows_; i += kQueriesAtOnce) {
      add_up_of<kQueriesAtOnce>(i, values, count, accs);
    }
    for (; i < rows_; ++i) add_up_of<1>(i, values, count, accs);
  }
  /// Values are made finite only where a sum is not finite: a weight of 0 does not keep infinities
  /// and NaN out of a product.
  template <int kQueries>
  void add_up_of(std::int64_t i, const Element* values, std::int64_t count, Real* all_accs) {
    const std::int64_t channels = block_.v.extents.channels;
    const QueryRows<Real> weights{scores_.get() + i * width_, width_};
    const QueryRows<Real> accs{all_accs + i * channels, channels};
    bool set_apart = false;
    const auto add = [&](auto vectors, auto d, std::int64_t c) HWY_ATTR {
      constexpr int kVectors = decltype(vectors)::value;
      const QueryRows<Real> sums{accs.values + c, channels};
      const Real* const keep = keep_.data() + i;
      if (add_values<kVectors, kQueries>(d, Rows<Element>{values + c, channels}, count, weights,
                                         keep, sums, false)) {
        return;
      }
      if (!set_apart) {
        finite_values_.load(values, count);
        finite_values_.make_finite();
        set_apart = true;
      }
      add_values<kVectors, kQueries>(d, finite_values_.finite(0).channel(c), count, weights, keep,
                                     sums, true);
    };
    for_vectors_of_channels<kQueries == 1 ? 8 : 4>(channels, add);
    if (!set_apart) return;
    for (int query = 0; query < kQueries; ++query) {
      finite_values_.add_specials(0, count, weights.of(query), accs.of(query), 1);
    }
  }
  /// Calls add(vectors, d, c) for groups of channels: as many vectors as may be, then single numbers.
  template <int kMost, class Add>
  static HWY_INLINE void for_vectors_of_channels(std::int64_t channels, const Add& add) {
    const hn::ScalableTag<Real> d;
    const std::int64_t n = lanes<Real>();
    std::int64_t c = 0;
    for (; c + kMost * n <= channels; c += kMost * n) {
      add(std::integral_constant<int, kMost>(), d, c);
    }
    for (; c + 4 * n <= channels; c += 4 * n) add(std::integral_constant<int, 4>(), d, c);
    for (; c + n <= channels; c += n) add(std::integral_constant<int, 1>(), d, c);
    for (; c < channels; ++c) add(std::integral_constant<int, 1>(), hn::CappedTag<Real, 1>(), c);
  }

  const Block<Element>& block_;
  const Real unit_;                  ///< scale · log2 e: scores are in base 2
  const std::int64_t rows_;          ///< queries of all heads that share a K/V head
  const std::int64_t width_;         ///< keys of a block, in whole strips
  WideRows<Element> finite_values_;  ///< of the block at hand, where some are not
  AlignedArray<Real> strip_;         ///< (channels, kStripKeys) keys
  std::vector<Real> queries_;        ///< (rows_, channels)
  AlignedArray<Real> scores_;        ///< (rows_, width_), then weights
  std::vector<Real> keep_;           ///< of each row: the factor of sums from before the block
  std::vector<KeyInterval> seen_;    ///< by each token
};

/// States and accumulators of all rows against the slices of keys from the second on.
template <class Real>
class SliceParts {
 public:
  SliceParts(std::int64_t slices, std::int64_t rows, std::int64_t channels)
      : rows_(rows),
        channels_(channels),
        states_(size(slices, rows)),
        accs_(size(slices, rows * channels)) {}

  SoftmaxState<Real>* states(std::int64_t slice) { return states_.data() + (slice - 1) * rows_; }
  Real* accs(std::int64_t slice) { return accs_.data() + (slice - 1) * rows_ * channels_; }

  /// Takes a slice into the rows: maxima are in base 2.
  void merge_into(SoftmaxState<Real>* states, Real* accs, std::int64_t slice) {
    const hn::ScalableTag<Real> d;
    const Exp2<decltype(d)> exp2(d);
    for (std::int64_t row = 0; row < rows_; ++row, accs += channels_) {
      const SoftmaxState<Real>& part = this->states(slice)[row];
      const Real* const values = this->accs(slice) + row * channels_;
      SoftmaxState<Real>& state = states[row];
      const Real top = std::max(state.row_max, part.row_max);
      const Real base = top == kEmptyRowMax<Real> ? 0 : top;
      const Real keep = hn::GetLane(exp2(hn::Set(d, state.row_max - base)));
      const Real add = hn::GetLane(exp2(hn::Set(d, part.row_max - base)));
      state = {top, state.row_sum * keep + part.row_sum * add};
      for (std::int64_t c = 0; c < channels_; ++c) accs[c] = accs[c] * keep + values[c] * add;
    }
  }

 private:
  static std::size_t size(std::int64_t slices, std::int64_t each) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, slices - 1) * each);
  }

  std::int64_t rows_, channels_;
  std::vector<SoftmaxState<Real>> states_;
  std::vector<Real> accs_;
};

/// forward_block() where has_few_queries(). Threads share slices of keys: the first slice goes on
/// from the given states.
template <class Element>
void forward_few(const Block<Element>& block, SoftmaxState<Accumulator<Element>>* states,
                 Accumulator<Element>* accs) {
  const Extents &q = block.q.extents, &k = block.k.extents;
  const std::vector<KeySlice> slices =
      key_slices(block.keys, block.tiles.keys, kSliceBlocks * block.tiles.keys);
  const std::int64_t count = std::ssize(slices);
  SliceParts<Accumulator<Element>> parts(count, q.batch * q.heads * q.tokens,
                                         block.v.extents.channels);
  share_out(
      k.batch * k.heads * count, block.threads,
      [&] {
        return [&, worker = FewQueriesWorker<Element>(block)](std::int64_t part) mutable {
          const std::int64_t slice = part % count;
          const bool first = slice == 0;
          worker.run(part / count, slices[static_cast<std::size_t>(slice)],
                     first ? states : parts.states(slice), first ? accs : parts.accs(slice));
        };
      },
      block.done);
  for (std::int64_t slice = 1; slice < count; ++slice) parts.merge_into(states, accs, slice);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
