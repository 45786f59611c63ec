#include "property_tests/plugins/arrays/elements.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "property_tests/plugins/plugin_profile.h"

namespace ringlab::plugins {
namespace {

/// A number of `dtype` in its own bits.
template <class Bits>
void put(std::uint8_t* at, Bits bits) {
  std::memcpy(at, &bits, sizeof(bits));
}

}  // namespace

void encode(std::uint8_t* at, DType dtype, double value) {
  with_element_type(dtype, [&](auto element) { put(at, decltype(element)(value)); });
}

std::uint64_t signalling_nan(DType dtype, std::uint64_t mark) {
  switch (dtype) {
    case DType::f64:
      return 0x7ff4000000000000u | (mark & 0xffffffffffffu);
    case DType::f32:
      return 0x7fa00000u | (mark & 0xfffffu);
    case DType::f16:
      return 0x7d00u | (mark & 0xffu);
    default:
      return 0x7fa0u | (mark & 0x1fu);
  }
}

void fill_with_nan(std::uint8_t* at, std::int64_t elements, DType dtype, std::uint64_t mark) {
  const std::uint64_t bits = signalling_nan(dtype, mark);  // little-endian: its low bytes first
  const auto size = static_cast<std::size_t>(size_of(dtype));
  for (std::int64_t i = 0; i < elements; ++i, at += size) std::memcpy(at, &bits, size);
}

void describe(const Extents& e, const Strides& s, DType dtype, ringlab_tensor& shape) {
  shape = {};
  shape.dtype = dtype_index(dtype);
  const std::int64_t extents[] = {e.batch, e.heads, e.tokens, e.channels};
  const std::int64_t strides[] = {s.batch, s.head, s.token, s.channel};
  std::copy(std::begin(extents), std::end(extents), shape.extents);
  std::copy(std::begin(strides), std::end(strides), shape.strides);
}

Span span_of(const Extents& e, const Strides& s) {
  Span span;
  const std::int64_t steps[] = {(e.batch - 1) * s.batch, (e.heads - 1) * s.head,
                                (e.tokens - 1) * s.token, (e.channels - 1) * s.channel};
  for (const std::int64_t step : steps) (step < 0 ? span.low : span.high) += step;
  return span;
}

std::uint64_t address_for(const void* place) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(place) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  constexpr std::uint64_t kFirst = 0x200000000000u, kRange = 0x200000000000u;
  constexpr std::uint64_t kSpacing = std::uint64_t{1} << 24;
  return kFirst + hash % (kRange / kSpacing) * kSpacing;
}

}  // namespace ringlab::plugins
