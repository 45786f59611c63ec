// Products of the tiles of the bf16 kernels: of pairs in vectors, or of matrices in tile registers.
#pragma once

#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_backward_tile.h"
#include "optimized/cpu/bf16/bf16_dot_tile.h"

namespace ringlab::cpu::bf16_dot {

/// The products of a tile, and the layout of their operands in memory.
struct Products {
  void (*score)(const Scoring&);
  void (*add_weighted)(const Adding&);
  void (*add_over_queries)(const Gathering&);
  bool (*pack_values)(const Packing&);
  std::int64_t pairs;   ///< that are summed together, filled up with zeros
  std::int64_t keys;    ///< parts of a block of keys begin at multiples of so many
  std::int64_t rows;    ///< of keys in memory, filled up with zeros, are multiples of so many
  std::int64_t panel;   ///< channels of V that lie together
  std::int64_t groups;  ///< times block.tiles.queries share a block of keys
  void (*begin)();      ///< on the thread that multiplies, before and after; null where not needed
  void (*end)();

  /// Pairs of `count` numbers, filled up.
  std::int64_t pairs_of(std::int64_t count) const {
    return (count + 2 * pairs - 1) / (2 * pairs) * pairs;
  }
  /// Panels that so many channels fill.
  std::int64_t panels_of(std::int64_t channels) const { return (channels + panel - 1) / panel; }
};

/// Pairs in vectors: the functions of bf16_dot_tile.h.
extern const Products kDotProducts;

/// Calls begin() and end() around a thread's products.
class Multiplying {
 public:
  explicit Multiplying(const Products& products) : products_(products) {
    if (products_.begin) products_.begin();
  }
  ~Multiplying() {
    if (products_.end) products_.end();
  }
  Multiplying(const Multiplying&) = delete;
  Multiplying& operator=(const Multiplying&) = delete;

 private:
  const Products& products_;
};

}  // namespace ringlab::cpu::bf16_dot
