#include "reference/attention/exact.h"
#include "reference/attention/fast_group.h"
#include "reference/attention/fast_plan.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab {

ExactForward fast_forward(const AttentionInput& input, const ExactOptions& options) {
  if (input.problem.modifiers.any()) return exact_forward(input, options);
  const fast::FastPlan plan(input, options);
  if (!plan.in_range()) return exact_forward(input, options);
  const Shape& shape = input.problem.shape;
  const Extents out{shape.batch, shape.q_heads, plan.rows_per_head(), shape.v_dim};
  const Extents lse{shape.batch, shape.q_heads, plan.rows_per_head(), 1};
  ExactForward result{.out = Tensor<double>(out),
                      .lse = Tensor<double>(lse),
                      .out_error = Tensor<double>(out),
                      .lse_error = Tensor<double>(lse)};
  parallel_rows(fast::GroupWorker::groups(plan), options.threads,
                [&] { return fast::GroupWorker(plan, result); });
  return result;
}

}  // namespace ringlab
