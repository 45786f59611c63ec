#include "optimized/ring/native_checks.h"

#include <string>

#include "optimized/ring/dense_rows.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
void check_run(const Problem& problem, const RunOptions& options) {
  check_problem(problem);
  check_range("ranks", options.ranks, 1, 4096);
  check_range("slots", options.slots, 1, 4096);
  check_range("tile-keys", options.tile_keys, 1, 1 << 20);
  check_range("tile-queries", options.tile_queries, 1, 1 << 20);
  check_range("threads", options.threads, 1, 4096);
}

void check_dtype(DType elements, DType wanted) {
  if (elements == wanted) return;
  throw_usage_error({.where = "elements of the tensors",
                     .expected = std::string(dtype_info(wanted).name) + ", the problem's dtype",
                     .actual = std::string(dtype_info(elements).name),
                     .hint = ""});
}

template <class Element>
void check_shard(const Problem& problem, const RunOptions& options,
                 const NativeShard<Element>& shard, int rank) {
  check_modifiers(problem.modifiers, problem.shape);
  const Shape& s = problem.shape;
  const std::int64_t rows =
      make_layout(options, s.q_tokens, options.q_layout).positions(rank).size();
  const std::int64_t keys =
      make_layout(options, s.kv_tokens, options.kv_layout).positions(rank).size();
  check_extents("q of this rank", shard.q.extents, with_tokens(s.q(), rows));
  check_extents("k of this rank", shard.k.extents, with_tokens(s.k(), keys));
  check_extents("v of this rank", shard.v.extents, with_tokens(s.v(), keys));
  if (shard.dout) check_extents("do of this rank", shard.dout->extents, with_tokens(s.out(), rows));
}

template void check_shard(const Problem&, const RunOptions&, const NativeShard<double>&, int);
template void check_shard(const Problem&, const RunOptions&, const NativeShard<float>&, int);
template void check_shard(const Problem&, const RunOptions&, const NativeShard<Half>&, int);
template void check_shard(const Problem&, const RunOptions&, const NativeShard<BFloat16>&, int);

}  // namespace ringlab::ring
