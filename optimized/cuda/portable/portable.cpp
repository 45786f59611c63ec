#include "optimized/cuda/portable/portable.h"

namespace ringlab::cuda {
namespace {

bool is_width(std::int32_t channels) {
  return channels > 0 && channels <= 256 && channels % 8 == 0;
}

}  // namespace

std::string why_not_portable(const BlockShape& shape) {
  if (!is_width(shape.head_dim)) return "head_dim = " + std::to_string(shape.head_dim);
  if (!is_width(shape.v_dim)) return "v_dim = " + std::to_string(shape.v_dim);
  if (shape.batch < 1 || shape.kv_heads < 1 || shape.q_heads < 1 ||
      shape.q_heads % shape.kv_heads != 0) {
    return std::to_string(shape.q_heads) + " query heads for " + std::to_string(shape.kv_heads) +
           " K/V heads";
  }
  if (shape.queries < 0 || shape.keys < 0) {
    return std::to_string(shape.queries) + " queries, " + std::to_string(shape.keys) + " keys";
  }
  return "";
}

}  // namespace ringlab::cuda
