// Chooses the widest vectors this processor has, once per call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/attention/fast_kernel.cpp"
#include "reference/attention/fast_kernel.h"

#include <hwy/foreach_target.h>  // compiles this file once per target
#include <hwy/highway.h>

#include "reference/attention/fast_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::fast::HWY_NAMESPACE {

std::int64_t lanes_of_a_tile() { return width(); }

bool add_block(const FastKeys& block, const FastQueries& tile) {
  scores(block, tile);
  if (tile.hiding != Hiding::nothing) hide(block, tile);
  const bool risen = raise_max(block, tile);
  weigh(block, tile, risen);
  add_values(block, tile, risen);
  return risen;
}

double sum_of_squares(const double* row, std::int64_t channels) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  Vector sum = hn::Zero(d);
  std::int64_t c = 0;
  for (; c + n <= channels; c += n) {
    const Vector x = hn::LoadU(d, row + c);
    sum = hn::MulAdd(x, x, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; c < channels; ++c) total += row[c] * row[c];
  return total;
}

bool raise_to_magnitudes(const double* row, std::int64_t channels, double* largest) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  Vector zeros = hn::Zero(d);  // 0 · x is not 0 for what is not finite
  double zero = 0;
  std::int64_t c = 0;
  for (; c + n <= channels; c += n) {
    const Vector x = hn::LoadU(d, row + c);
    zeros = hn::MulAdd(hn::Zero(d), x, zeros);
    hn::StoreU(hn::Max(hn::LoadU(d, largest + c), hn::Abs(x)), d, largest + c);
  }
  for (; c < channels; ++c) {
    zero += 0 * row[c];
    const double size = row[c] < 0 ? -row[c] : row[c];
    if (size > largest[c]) largest[c] = size;
  }
  return zero == 0 && hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)));
}

void powers_of_two(const double* x, std::int64_t count, double* result) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  std::int64_t i = 0;
  for (; i + n <= count; i += n) hn::StoreU(power_of_two(hn::LoadU(d, x + i)), d, result + i);
  for (; i < count; ++i) result[i] = hn::GetLane(power_of_two(hn::Set(d, x[i])));
}

}  // namespace ringlab::fast::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringlab::fast {

HWY_EXPORT(lanes_of_a_tile);
HWY_EXPORT(add_block);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(raise_to_magnitudes);
HWY_EXPORT(powers_of_two);

std::int64_t tile_width() { return HWY_DYNAMIC_DISPATCH(lanes_of_a_tile)(); }

bool add_block(const FastKeys& block, const FastQueries& tile) {
  return HWY_DYNAMIC_DISPATCH(add_block)(block, tile);
}

double sum_of_squares(const double* row, std::int64_t channels) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares)(row, channels);
}

bool raise_to_magnitudes(const double* row, std::int64_t channels, double* largest) {
  return HWY_DYNAMIC_DISPATCH(raise_to_magnitudes)(row, channels, largest);
}

void powers_of_two(const double* x, std::int64_t count, double* result) {
  HWY_DYNAMIC_DISPATCH(powers_of_two)(x, count, result);
}

}  // namespace ringlab::fast
#endif
