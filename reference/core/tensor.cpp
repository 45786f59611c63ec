#include "reference/core/tensor.h"

#include <algorithm>
#include <string>

#include "reference/core/error.h"

namespace ringlab {

std::int64_t checked_size(const Extents& e) {
  constexpr std::int64_t kTooMany = std::int64_t{1} << 59;
  std::int64_t addressed = 1;
  for (const std::int64_t extent : {e.batch, e.heads, e.tokens, e.channels}) {
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (extent < 0 || __builtin_mul_overflow(addressed, factor, &addressed) ||
        addressed >= kTooMany) {
      throw_input_error({.where = "tensor shape",
                         .expected = "extents >= 0 with a product below 2^59",
                         .actual = "(" + std::to_string(e.batch) + ", " + std::to_string(e.heads) +
                                   ", " + std::to_string(e.tokens) + ", " +
                                   std::to_string(e.channels) + ")"});
    }
  }
  return e.size();
}

}  // namespace ringlab
