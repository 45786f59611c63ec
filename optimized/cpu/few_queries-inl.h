// A few queries against many keys, lanes along keys and channels: decoding. Included once per target.
//
// A tile (forward_tile-inl.h) has a lane for each query, which few queries leave empty. Here a block
// of keys is transposed, so that lanes are keys while scores are made, and channels while values are
// added up: no lane is empty, and keys and values are read once for all query heads that share them.
// Every sum takes the same terms in the same order as a tile's, so the bits are the same, as far as a
// slice of keys goes. Threads take slices, which are merged in their order: one head may keep all of
// them busy (Flash-Decoding, Dao et al. 2023).
#if defined(RINGLAB_CPU_FEW_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_FEW_QUERIES_INL_H_
#undef RINGLAB_CPU_FEW_QUERIES_INL_H_
#else
#define RINGLAB_CPU_FEW_QUERIES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/key_slices.h"
#include "optimized/cpu/lanes-inl.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vector_exp2-inl.h"
#include "optimized/cpu/visible_rows.h"
#include "optimized/cpu/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// The most queries of a head for which a tile is not faster; measured, see docs/performance.md.
inline constexpr std::int64_t kMostFewQueries = 4;
/// Whole blocks of keys in a slice: a merge costs little beside them.
inline constexpr std::int64_t kSliceBlocks = 8;
/// Vectors of keys or channels whose sums are under way at the same time.
inline constexpr int kSumsAtOnce = 8;

/// Whether a block has few queries, and nothing that tiles alone can do.
template <class Element>
bool has_few_queries(const Block<Element>& block) {
  return block.q.extents.tokens <= kMostFewQueries && block.is_plain() && !block.mask.has_bits();
}

/// scores[j] = unit · Σ_c keys[c][j] q[c], c in order, of kVectors vectors of keys; channels of `keys`
/// are `stride` numbers apart.
template <int kVectors, class Real>
HWY_INLINE void score_keys(const Real* HWY_RESTRICT keys, std::int64_t stride, const Real* q,
                           std::int64_t channels, Real unit, Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  Vector<Real> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto factor = hn::Set(d, q[c]);
    for (int x = 0; x < kVectors; ++x) {
      sums[x] = hn::MulAdd(factor, hn::Load(d, keys + c * stride + x * lanes<Real>()), sums[x]);
    }
  }
  for (int x = 0; x < kVectors; ++x) {
    hn::Store(hn::Mul(sums[x], hn::Set(d, unit)), d, scores + x * lanes<Real>());
  }
}

/// acc[c] = keep · acc[c] + Σ_j weights[j] values[j][c], j in order, of kVectors vectors of channels.
template <int kVectors, class D, class Real = hn::TFromD<D>>
HWY_INLINE void add_values(D d, const Rows<Real>& values, const Real* weights, std::int64_t count,
                           Real keep, Real* acc) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kVectors];
  for (int x = 0; x < kVectors; ++x) {
    sums[x] = hn::LoadU(d, acc + x * n);
    if (keep != Real(1)) sums[x] = hn::Mul(sums[x], hn::Set(d, keep));
  }
  for (std::int64_t j = 0; j < count; ++j) {
    const auto weight = hn::Set(d, weights[j]);
    for (int x = 0; x < kVectors; ++x) {
      sums[x] = hn::MulAdd(weight, hn::LoadU(d, values.from(j).values + x * n), sums[x]);
    }
  }
  for (int x = 0; x < kVectors; ++x) hn::StoreU(sums[x], d, acc + x * n);
}

/// add_values() of all channels.
template <class Real>
HWY_INLINE void add_all_values(const Rows<Real>& values, std::int64_t channels, const Real* weights,
                               std::int64_t count, Real keep, Real* acc) {
  const hn::ScalableTag<Real> d;
  const hn::CappedTag<Real, 1> one;
  const std::int64_t n = lanes<Real>();
  std::int64_t c = 0;
  for (; c + kSumsAtOnce * n <= channels; c += kSumsAtOnce * n) {
    add_values<kSumsAtOnce>(d, values.channel(c), weights, count, keep, acc + c);
  }
  for (; c + 4 * n <= channels; c += 4 * n) {
    add_values<4>(d, values.channel(c), weights, count, keep, acc + c);
  }
  for (; c + n <= channels; c += n) {
    add_values<1>(d, values.channel(c), weights, count, keep, acc + c);
  }
  for (; c < channels; ++c) {
    add_values<1>(one, values.channel(c), weights, count, keep, acc + c);
  }
}

/// A worker on some query heads that share a K/V head.
template <class Element>
class FewQueriesWorker {
 public:
  using Real = Accumulator<Element>;

  explicit FewQueriesWorker(const Block<Element>& block)
      : block_(block),
        unit_(static_cast<Real>(in_base_2(block.scale))),
        width_(rounded_up(block.tiles.keys)),
        stride_(width_ + kLine),
        values_(block.tiles.keys, block.v.extents.channels),
        turned_(aligned_array<Real>(stride_ * block.q.extents.channels)),
        scores_(aligned_array<Real>(width_ + lanes<Real>())) {
    const Extents& q = block.q.extents;
    for (const std::int64_t position : block.queries.to_list()) {
      seen_.push_back(block.mask.interval(position));
    }
    queries_.resize(static_cast<std::size_t>(q.channels));
  }

  /// All query heads of K/V head kv_head against a slice of its keys.
  void run(std::int64_t kv_head, const KeySlice& slice, SoftmaxState<Real>* states, Real* accs) {
    const Extents &k = block_.k.extents, &v = block_.v.extents;
    for (const KeyRows& block : slice) {
      const PositionRun& run = block_.keys.runs()[block.run];
      const RowRange part = common(block.rows, seen_by_any(run));
      if (part.empty()) continue;
      const std::int64_t row = kv_head * k.tokens + block.start + part.first;
      values_.load(block_.v.data + row * v.channels, part.last - part.first);
      values_.make_finite();
      into_lanes(block_.k.data + row * k.channels, part.last - part.first, k.channels,
                 turned_.get(), width_, stride_);
      take_in(run, part, kv_head, states, accs);
    }
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(Real);

  static std::int64_t rounded_up(std::int64_t keys) {
    const std::int64_t step = std::max(kSumsAtOnce * lanes<Real>(), kSquare<Real>);
    return (keys + step - 1) / step * step;
  }
  RowRange seen_by_any(const PositionRun& run) const {
    TileView view;
    for (const KeyInterval& keys : seen_) view.add(rows_in(run, keys), &keys == &seen_.front());
    return view.some;
  }

  void take_in(const PositionRun& run, const RowRange& part, std::int64_t kv_head,
               SoftmaxState<Real>* states, Real* accs) {
    const Extents &q = block_.q.extents, &v = block_.v.extents;
    const std::int64_t group = q.heads / block_.k.extents.heads;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t i = 0; i < q.tokens; ++i) {
        const RowRange seen = common(part, rows_in(run, seen_[static_cast<std::size_t>(i)]));
        if (seen.empty()) continue;
        const std::int64_t row = head * q.tokens + i;
        take_in_row(block_.q.data + row * q.channels,
                    {seen.first - part.first, seen.last - part.first}, states[row],
                    accs + row * v.channels);
      }
    }
  }

  /// One query against the rows of the block that it sees: their scores, which become weights.
  void take_in_row(const Element* q, const RowRange& rows, SoftmaxState<Real>& state, Real* acc) {
    const std::int64_t channels = block_.v.extents.channels, count = rows.last - rows.first;
    score_rows(q, rows);
    Real* const scores = scores_.get() + rows.first;
    const Real top = std::max(state.row_max, largest(scores, count));
    const Real base = top == kEmptyRowMax<Real> ? 0 : top;
    const hn::ScalableTag<Real> d;
    const Exp2<decltype(d)> exp2(d);
    const Real keep = hn::GetLane(exp2(hn::Set(d, state.row_max - base)));
    for (std::int64_t j = 0; j < count; j += lanes<Real>()) {  // what lies beyond is not looked at
      hn::StoreU(exp2(hn::Sub(hn::LoadU(d, scores + j), hn::Set(d, base))), d, scores + j);
    }
    state.row_max = top;
    Real sum = state.row_sum * keep;
    for (std::int64_t j = 0; j < count; ++j) sum += scores[j];
    state.row_sum = sum;
    add_all_values(values_.finite(rows.first), channels, scores, count, keep, acc);
    values_.add_specials(rows.first, count, scores, acc, 1);
  }

  /// Scores of all keys of the block up to the last row that is seen.
  void score_rows(const Element* q, const RowRange& rows) {
    const std::int64_t channels = block_.q.extents.channels, n = lanes<Real>();
    for (std::int64_t c = 0; c < channels; ++c) {
      queries_[static_cast<std::size_t>(c)] = static_cast<Real>(q[c]);
    }
    std::int64_t j = rows.first / n * n;
    for (; j + kSumsAtOnce * n <= width_ && j < rows.last; j += kSumsAtOnce * n) {
      score_keys<kSumsAtOnce>(turned_.get() + j, stride_, queries_.data(), channels, unit_,
                              scores_.get() + j);
    }
    for (; j < rows.last; j += n) {
      score_keys<1>(turned_.get() + j, stride_, queries_.data(), channels, unit_,
                    scores_.get() + j);
    }
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

  const Block<Element>& block_;
  const Real unit_;            ///< scale · log2 e: scores are in base 2
  const std::int64_t width_;   ///< keys of a block, in whole groups of vectors
  const std::int64_t stride_;  ///< and a line: else channels meet in a few sets of the first cache
  WideRows<Element> values_;   ///< of the block at hand
  AlignedArray<Real> turned_;  ///< (channels, stride_) its keys
  AlignedArray<Real> scores_;  ///< of one query, then weights
  std::vector<Real> queries_;  ///< the channels of one query
  std::vector<KeyInterval> seen_;
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

/// forward_block of has_few_queries(). Threads share slices of keys: the first goes on from the
/// states there are.
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
