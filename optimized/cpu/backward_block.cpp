#include <cmath>

#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/key_tile.h"
#include "reference/core/small_float.h"

namespace ringlab::cpu {
namespace {

/// Where one head's rows lie.
template <class Element>
struct HeadGradients {
  using Real = Accumulator<Element>;
  const Element *q = nullptr, *k = nullptr, *v = nullptr, *dout = nullptr;
  const Real *lse = nullptr, *delta = nullptr;
  Real *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

/// One head of a block, tile by tile.
template <class Element>
class BackwardHead {
 public:
  using Real = Accumulator<Element>;

  explicit BackwardHead(const Block<Element>& block)
      : block_(block),
        d_(block.q.extents.channels),
        dv_(block.v.extents.channels),
        stride_(block.tiles.keys),
        tile_mask_(block.mask, stride_),
        queries_(block.queries.to_list()),
        keys_(size(stride_ * d_)),
        values_(size(stride_ * dv_)),
        query_(size(d_)),
        dout_(size(dv_)),
        scores_(size(stride_)),
        dp_(size(stride_)) {}

  void run(const HeadGradients<Element>& head) {
    const std::int64_t rows = block_.q.extents.tokens, keys = block_.k.extents.tokens;
    for (std::int64_t first = 0; first < keys; first += stride_) {
      const KeyRange tile{first, std::min(stride_, keys - first)};
      tile_mask_.load(block_.keys, tile);
      transpose(head.k + first * d_, tile.count, d_, stride_, keys_.data());
      transpose(head.v + first * dv_, tile.count, dv_, stride_, values_.data());
      for (std::int64_t row = 0; row < rows; ++row) add_row(head, tile, row);
    }
  }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  void add_row(const HeadGradients<Element>& head, KeyRange tile, std::int64_t row) {
    const std::int64_t query = queries_[size(row)];
    const KeyRange seen = tile_mask_.seen_by(query);
    if (seen.count == 0) return;
    widen(head.q + row * d_, d_, query_.data());
    widen(head.dout + row * dv_, dv_, dout_.data());
    dot_all(query_.data(), keys_.data(), d_, seen, stride_, scores_.data());
    dot_all(dout_.data(), values_.data(), dv_, seen, stride_, dp_.data());
    const KeyInterval visible = tile_mask_.visible(query);
    for (std::int64_t j = seen.first; j < seen.first + seen.count; ++j) {
      if (!tile_mask_.sees(query, visible, j)) continue;
      const std::int64_t key = tile.first + j;
      const Real p = std::exp(Real(block_.scale) * scores_[size(j)] - head.lse[row]);
      const Real ds = p * (dp_[size(j)] - head.delta[row]);
      add_scaled(head.dq + row * d_, ds, head.k + key * d_, d_);
      add_scaled(head.dk + key * d_, ds, query_.data(), d_);
      add_scaled(head.dv + key * dv_, p, dout_.data(), dv_);
    }
  }

  const Block<Element>& block_;
  const std::int64_t d_, dv_, stride_;
  TileMask tile_mask_;
  const std::vector<std::int64_t> queries_;
  std::vector<Real> keys_;    // (head_dim, tile)
  std::vector<Real> values_;  // (v_dim, tile)
  std::vector<Real> query_, dout_, scores_, dp_;
};

}  // namespace

template <class Element>
void backward_block(const Block<Element>& block, const QueryGradients<Element>& given,
                    const BlockGradients<Element>& sums) {
  BackwardHead<Element> head(block);
  const Extents &q = block.q.extents, &k = block.k.extents, &v = block.v.extents;
  const std::int64_t group = q.heads / k.heads;
  for (std::int64_t h = 0; h < q.batch * q.heads; ++h) {
    const std::int64_t kv = h / group;
    head.run({.q = block.q.data + h * q.tokens * q.channels,
              .k = block.k.data + kv * k.tokens * k.channels,
              .v = block.v.data + kv * v.tokens * v.channels,
              .dout = given.dout.data + h * q.tokens * v.channels,
              .lse = given.lse + h * q.tokens,
              .delta = given.delta + h * q.tokens,
              .dq = sums.dq + h * q.tokens * q.channels,
              .dk = sums.dk + kv * k.tokens * k.channels,
              .dv = sums.dv + kv * v.tokens * v.channels});
  }
}

template void backward_block(const Block<double>&, const QueryGradients<double>&,
                             const BlockGradients<double>&);
template void backward_block(const Block<float>&, const QueryGradients<float>&,
                             const BlockGradients<float>&);
template void backward_block(const Block<Half>&, const QueryGradients<Half>&,
                             const BlockGradients<Half>&);
template void backward_block(const Block<BFloat16>&, const QueryGradients<BFloat16>&,
                             const BlockGradients<BFloat16>&);

}  // namespace ringlab::cpu
