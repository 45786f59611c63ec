#include "reference/core/tensor.h"

#include <algorithm>
#include <string>

#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr std::int64_t kTooMany = std::int64_t{1} << 59;
// Nothing is stored of a tensor without elements, so that a few bytes could claim heads enough to
// be counted through for days.
constexpr std::int64_t kMostBesideZero = std::int64_t{1} << 24;

std::string text_of(const Extents& e) {
  return "(" + std::to_string(e.batch) + ", " + std::to_string(e.heads) + ", " +
         std::to_string(e.tokens) + ", " + std::to_string(e.channels) + ")";
}

}  // namespace

std::int64_t checked_size(const Extents& e) {
  std::int64_t addressed = 1;
  for (const std::int64_t extent : {e.batch, e.heads, e.tokens, e.channels}) {
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (extent < 0 || __builtin_mul_overflow(addressed, factor, &addressed) ||
        addressed >= kTooMany) {
      throw_input_error({.where = "tensor shape",
                         .expected = "extents >= 0 with a product below 2^59",
                         .actual = text_of(e)});
    }
  }
  if (e.size() == 0 && addressed > kMostBesideZero) {
    throw_input_error({.where = "tensor shape",
                       .expected = "beside an extent of 0, others with a product of at most 2^24",
                       .actual = text_of(e)});
  }
  return e.size();
}

}  // namespace ringlab
