// The work of a pass of attention, in operations and bytes.
#pragma once

#include <cstdint>

#include "reference/core/problem.h"
#include "reference/core/run.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::model {

/// Work of all batches and heads together; bytes without headers and without the scales of fp8.
struct Work {
  Pass pass = Pass::forward;
  std::int64_t flops_per_pair = 0;         ///< of a (query, key) pair that the mask allows
  std::int64_t kv_bytes_per_token = 0;     ///< of K and V as they travel
  std::int64_t sum_bytes_per_token = 0;    ///< of dK and dV as they travel; 0 in a forward pass
  std::int64_t out_numbers_per_token = 0;  ///< of a query: of its output, or of dQ
};

/// Forward two products, 2 (head_dim + v_dim) operations per pair and query head; backward five,
/// 2 (3 head_dim + 2 v_dim). Sums travel in f32, those of f64 in f64.
Work work_of(const Problem& problem, Pass pass, WireFormat wire = WireFormat::exact);

}  // namespace ringlab::model
