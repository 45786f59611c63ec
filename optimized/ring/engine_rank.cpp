// One rank of a run whose rows are given, and wanted, as doubles.
#include "optimized/ring/engine.h"
#include "optimized/ring/shard_rows.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {

ShardResult run_engine_rank_with(const EngineParts& parts, const Problem& problem,
                                 const RunOptions& options, const ShardInput& shard,
                                 Communicator& network) {
  ShardResult result;
  with_element_type(problem.dtype, [&]<class Element>(Element) {
    const NarrowRows<Element> rows(shard);
    result =
        widened_result(run_native_rank<Element>(problem, options, rows.shard(), network, parts));
  });
  return result;
}

ShardResult run_engine_rank(const Problem& problem, const RunOptions& options,
                            const ShardInput& shard, Communicator& network) {
  return run_engine_rank_with({}, problem, options, shard, network);
}

}  // namespace ringlab::ring
