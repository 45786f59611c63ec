#include "stages/common/profiles.h"

namespace ringlab::stages {

std::int64_t chunk_tokens(const Problem& problem, const RunOptions& options, int rank) {
  return make_layout(options, problem.shape.kv_tokens, options.kv_layout).positions(rank).size();
}

std::int64_t largest_chunk(const Problem& problem, const RunOptions& options) {
  return make_layout(options, problem.shape.kv_tokens, options.kv_layout).largest_chunk();
}

}  // namespace ringlab::stages
