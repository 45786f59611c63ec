// Elements of a tensor as bytes: their types, their places, and the NaN between them.
#pragma once

#include <cstdint>

#include "property_tests/plugins/protocol.h"
#include "reference/core/dtype.h"
#include "reference/core/tensor.h"

namespace ringlab::plugins {

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

inline std::int64_t size_of(DType dtype) { return dtype_info(dtype).bytes; }

/// Writes a number in the bits of `dtype`.
void encode(std::uint8_t* at, DType dtype, double value);

/// A signalling NaN of `dtype`: quiet bit clear, the lowest bits of `mark` among the others.
std::uint64_t signalling_nan(DType dtype, std::uint64_t mark);
/// Fills memory with signalling NaN: a plugin that reads unwritten elements gets NaN, and one that
/// forgets to write is told from one that computed a (quiet) NaN.
void fill_with_nan(std::uint8_t* at, std::int64_t elements, DType dtype, std::uint64_t mark);

/// Fills in all but the pointer: extents and strides in elements, (batch, heads, tokens, channels).
void describe(const Extents& e, const Strides& s, DType dtype, ringlab_tensor& shape);

/// The lowest and the highest offset of any element.
struct Span {
  std::int64_t low = 0, high = 0;
  std::int64_t elements() const { return high - low + 1; }
};
Span span_of(const Extents& e, const Strides& s);

/// The plugin's address for a place in our memory, always the same: a plugin that caches by address
/// shows when the numbers there change.
std::uint64_t address_for(const void* place);

}  // namespace ringlab::plugins
