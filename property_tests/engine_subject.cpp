// The ring engine as a subject.
#include "property_tests/engine_subject.h"

#include "optimized/cpu/vectors.h"
#include "optimized/ring/engine.h"

namespace ringlab::verify {

Subject engine_subject() {
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.backward = true;
  can.schedules = true;
  can.traces = true;
  can.threads = true;
  can.skips_empty_blocks = true;
  can.modifiers = true;
  return {
      .name = "optimized",
      .title = "optimized: the ring engine with its block kernels",
      .can = std::move(can),
      .run = [](const AttentionInput& input,
                const RunOptions& options) { return ring::run_engine(input, options); },
      .profile = [](const Problem& problem,
                    const RunOptions& options) { return ring::engine_profile(problem, options); },
      .tile_queries = cpu::kTileQueries,
      .tile_keys = cpu::kTileKeys};
}

}  // namespace ringlab::verify
