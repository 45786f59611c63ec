#include "reference/model/work.h"

#include "reference/core/wire_profile.h"

namespace ringlab::model {

Work work_of(const Problem& problem, Pass pass, WireFormat wire) {
  const Shape& s = problem.shape;
  const std::int64_t heads = s.batch * s.q_heads, kv_heads = s.batch * s.kv_heads;
  const std::int64_t kv_numbers = kv_heads * (s.head_dim + s.v_dim);
  const bool backward = pass == Pass::backward;
  const std::int64_t sum_bytes = accumulator_bytes(problem.dtype);
  return {.pass = pass,
          .flops_per_pair =
              2 * heads * (backward ? 3 * s.head_dim + 2 * s.v_dim : s.head_dim + s.v_dim),
          .kv_bytes_per_token = kv_numbers * dtype_info(wire_dtype(wire, problem.dtype)).bytes,
          .sum_bytes_per_token = backward ? kv_numbers * sum_bytes : 0,
          .out_numbers_per_token = heads * (backward ? s.head_dim : s.v_dim)};
}

}  // namespace ringlab::model
