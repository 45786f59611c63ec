// A few query tiles of one head that share each block of keys while it is in the cache.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "reference/attention/fast_kernel.h"
#include "reference/attention/fast_plan.h"

namespace ringlab::fast {

/// Doubles aligned to 64 bytes, zero at first.
class Buffer {
 public:
  explicit Buffer(std::int64_t count = 0);
  double* data() { return values_.get(); }
  const double* data() const { return values_.get(); }
  void fill(double value);

 private:
  struct Free {
    void operator()(double* values) const { std::free(values); }
  };
  std::int64_t count_;
  std::unique_ptr<double[], Free> values_;
};

/// Rows slot … slot + count - 1 of one query head. Lanes beyond `count` repeat the last row.
struct FastTile {
  std::int64_t slot = 0;
  std::int64_t count = 0;
  KeyInterval reach = {};   ///< from the first key that any of the rows sees to the last
  KeyInterval common = {};  ///< the keys that all of them see, holes aside
  std::int64_t keys = 0, blocks = 0, rescales = 0;  ///< visited so far
  double key_norm = 0;                              ///< largest of the visited blocks
  std::vector<double> value_largest;                ///< of the visited blocks, per channel
  Buffer queries, acc, row_max, row_sum, run_begin, run_end;
};

/// Computes one group after the other with buffers of its own.
class GroupWorker {
 public:
  GroupWorker(const FastPlan& plan, ExactForward& result);

  /// Number of groups over all batches and heads.
  static std::int64_t groups(const FastPlan& plan);
  void operator()(std::int64_t group);

 private:
  void start(FastTile& tile);
  void load_queries(FastTile& tile);
  void add_blocks();
  void add_block_to(FastTile& tile, std::int64_t block, KeyInterval keys);
  void point_to_keys(std::int64_t block);
  void pack(KeyInterval keys);
  void hide_by_matrix(const FastTile& tile, KeyInterval keys);
  Hiding hiding(const FastTile& tile, KeyInterval keys) const;
  bool anyone_sees(const FastTile& tile, KeyInterval keys) const;
  void finish(FastTile& tile);
  void write_row(FastTile& tile, std::int64_t lane);

  const FastPlan* plan_;
  ExactForward* result_;
  std::int64_t width_, value_channels_;
  std::int64_t batch_ = 0, q_head_ = 0, kv_head_ = 0;  // of the group at hand
  std::vector<FastTile> tiles_;
  std::int64_t tiles_in_use_ = 0;
  FastKeys block_;  // from its first key on; parts of it are handed to tiles
  Buffer packed_k_, packed_v_, weights_, hidden_, factor_;
};

}  // namespace ringlab::fast
