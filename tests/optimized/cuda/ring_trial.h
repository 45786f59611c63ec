// Problems cut into chunks as a ring cuts them, for kernels on the emulated GPU: every rank's
// queries meet every chunk in turn, the running state is carried from hop to hop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/cuda/visible_keys.h"
#include "reference/core/layout.h"
#include "reference/core/problem.h"
#include "reference/core/run.h"
#include "tests/optimized/cuda/portable/portable_kernels.h"

namespace ringlab::cuda {

enum class InputKind { normal, late_maxima };

struct RingCase {
  Shape shape;
  std::string mask = "full";
  LayoutKind layout = LayoutKind::contiguous;
  int ranks = 1;
  InputKind inputs = InputKind::normal;
  unsigned seed = 0;
  std::string text() const;  ///< a line that says all of it
};

/// Any sizes, masks, layouts and ranks. `widest` bounds head_dim and v_dim.
RingCase random_case(unsigned seed, std::int64_t widest);

/// The case with numbers.
struct RingTrial {
  Problem problem;
  AttentionTensors tensors;
  Tensor<double> dout;
  Layout q_layout, kv_layout;

  AttentionInput input() const { return tensors.input(problem); }
  /// Of numerics profiles: blocks of keys that a row meets at most.
  std::int64_t blocks() const;
};
RingTrial make_trial(const RingCase& c, DType dtype);

/// One chunk of a tensor, dense.
template <class Element>
std::vector<Element> take(const Tensor<double>& tensor, const Positions& rows) {
  std::vector<Element> chunk;
  const Extents& e = tensor.extents();
  for_each_index({e.batch, e.heads, rows.size(), e.channels}, [&](auto b, auto h, auto t, auto c) {
    chunk.push_back(static_cast<Element>(tensor(b, h, rows[t], c)));
  });
  return chunk;
}

/// Back to its place in the tensor.
template <class Number>
void put(Tensor<double>& tensor, const Positions& rows, const std::vector<Number>& chunk) {
  std::size_t at = 0;
  const Extents& e = tensor.extents();
  for_each_index({e.batch, e.heads, rows.size(), e.channels}, [&](auto b, auto h, auto t, auto c) {
    tensor(b, h, rows[t], c) = static_cast<double>(chunk[at++]);
  });
}

/// What one rank's queries see of one chunk.
struct ChunkMask {
  std::vector<KeyRange> rows;
  std::vector<TileKeys> tiles;
  ChunkMask(const Problem& problem, const Positions& queries, const Positions& keys,
            std::int32_t tile_queries)
      : rows(visible_rows(problem.mask, queries, keys)),
        tiles(visible_to_tiles(rows, tile_queries)) {}
  BlockMask view() const { return {rows.data(), tiles.data()}; }
};

inline BlockShape block_shape(const Shape& s, std::int64_t queries, std::int64_t keys) {
  const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  return {.batch = narrow(s.batch),
          .q_heads = narrow(s.q_heads),
          .kv_heads = narrow(s.kv_heads),
          .queries = narrow(queries),
          .keys = narrow(keys),
          .head_dim = narrow(s.head_dim),
          .v_dim = narrow(s.v_dim)};
}

template <class Element>
AttentionOutput run_forward(const RingTrial& trial, const PortableKernels<Element>& kernels,
                            std::uint64_t seed);

/// What it differentiates is its own forward pass: lse and delta are of the given output.
struct GradientOptions {
  bool deterministic = false;
  std::uint64_t seed = 0;
};
template <class Element>
AttentionGradients run_backward(const RingTrial& trial, const AttentionOutput& output,
                                const PortableKernels<Element>& kernels,
                                const GradientOptions& options);

/// Empty, or what is wrong with it.
std::string judge(const RingTrial& trial, const AttentionOutput& got);
std::string judge(const RingTrial& trial, const AttentionGradients& got);

}  // namespace ringlab::cuda
