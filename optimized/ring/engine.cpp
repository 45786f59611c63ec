// The engine on tensors that one owner has whole, as doubles: shard, run, put together.
#include "optimized/ring/engine.h"

#include <new>

#include "optimized/ring/native.h"
#include "optimized/ring/whole_tensors.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

RunResult run_whole(const EngineParts& parts, const AttentionInput& input,
                    const RunOptions& options) {
  RunResult result = empty_result(input);
  with_element_type(input.problem.dtype, [&]<class Element>(Element) {
    take_summary(
        run_native<Element>(input.problem, options, whole_ends<Element>(input, result), parts),
        result);
  });
  return result;
}

}  // namespace

RunResult run_engine_with(const EngineParts& parts, const AttentionInput& input,
                          const RunOptions& options) {
  try {
    return run_whole(parts, input, options);
  } catch (const std::bad_alloc&) {  // outside the ranks: theirs have become errors already
    throw_environment_error({.where = "ring engine",
                             .expected = "memory for the outputs and the ranks",
                             .actual = "out of memory",
                             .hint = "Use fewer tokens, heads or ranks"});
  }
}

RunResult run_engine(const AttentionInput& input, const RunOptions& options) {
  return run_engine_with({}, input, options);
}

}  // namespace ringlab::ring
