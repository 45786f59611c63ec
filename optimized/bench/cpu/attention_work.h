// The timed work: attention as a caller of the block kernels computes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::bench {

struct AttentionSizes {
  std::int64_t heads = 1;
  std::int64_t queries = 1;  ///< the last ones of the sequence
  std::int64_t tokens = 1;
  std::int64_t head_dim = 64;
  std::string mask = "full";
  int threads = 1;
  cpu::TileSizes tiles = {cpu::kTileQueries, cpu::kTileKeys};
};

/// One batch entry of standard normal numbers, all keys in one block.
template <class Element>
class AttentionWork {
 public:
  using Real = Accumulator<Element>;

  explicit AttentionWork(const AttentionSizes& sizes);

  /// The kernel alone: from empty states to sums that are not divided yet.
  void run_kernel();
  /// The kernel, then out in the type of the inputs, and lse.
  void run_forward();
  /// Gradients in the type of the inputs, delta computed on the way, from out and lse, which the
  /// first call makes by run_forward(). As many keys as queries.
  void run_backward();
  /// The kernel alone, on what run_backward() works on; its sums go on growing.
  void run_backward_kernel();

  /// Operations on the mask's visible pairs: 2 products forward, 5 backward, 2 operations each.
  double forward_flops() const;
  double backward_flops() const { return 2.5 * forward_flops(); }
  /// Bytes moved to and from the second-level cache at least: q and the sums once, k and v once for
  /// every `tiles.queries` queries.
  double forward_bytes() const;

  /// Inputs and results: (1, heads, tokens, head_dim) each, dense, lse without channels.
  struct Tensors {
    const std::vector<Element>&q, &k, &v, &dout, &out;
    const std::vector<Real>& lse;
    const std::vector<Element>&dq, &dk, &dv;
  };
  Tensors tensors() const { return {q_, k_, v_, dout_, out_, lse_, dq_, dk_, dv_}; }

 private:
  cpu::Block<Element> block() const;
  std::size_t rows() const { return states_.size(); }
  void prepare_backward();

  const AttentionSizes sizes_;
  const Extents q_extents_, k_extents_;
  const Mask mask_;
  const Positions queries_, keys_;
  const std::vector<Element> q_, k_, v_, dout_;
  std::vector<SoftmaxState<Real>> states_;
  std::vector<Real> accs_, lse_, delta_, dq_sums_, dk_sums_, dv_sums_;
  std::vector<Element> out_, dq_, dk_, dv_;
};

extern template class AttentionWork<float>;
extern template class AttentionWork<BFloat16>;

/// `count` standard normal numbers, from `seed`.
template <class Element>
std::vector<Element> normal_values(std::int64_t count, unsigned seed);
extern template std::vector<float> normal_values(std::int64_t count, unsigned seed);
extern template std::vector<double> normal_values(std::int64_t count, unsigned seed);
extern template std::vector<BFloat16> normal_values(std::int64_t count, unsigned seed);

}  // namespace ringlab::bench
