#include "optimized/ring/host/wire.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/core/wire_profile.h"

namespace ringlab::ring {
namespace {

/// A tensor as rows of channels.
struct ChannelRows {
  std::int64_t count = 0;
  std::int64_t channels = 0;
  std::int64_t blocks() const { return (channels + kWireBlock - 1) / kWireBlock; }
};

ChannelRows rows_of(const Extents& extents) {
  return {extents.batch * extents.heads * extents.tokens, extents.channels};
}

template <class Stored>
void put(std::byte* wire, std::int64_t index, Stored value) {
  // Uses memcpy, as get() does: codes may begin at any address behind the scales.
  std::memcpy(wire + index * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

template <class Stored>
Stored get(const std::byte* wire, std::int64_t index) {
  Stored value;
  std::memcpy(&value, wire + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class Stored, class Element>
void narrow(std::span<const Element> values, std::byte* wire) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Goes by way of double, which holds every number of all four dtypes
    // exactly: there is one rounding in all.
    put(wire, static_cast<std::int64_t>(i), static_cast<Stored>(static_cast<double>(values[i])));
  }
}

template <class Stored, class Element>
void widen(const std::byte* wire, std::span<Element> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Stored stored = get<Stored>(wire, static_cast<std::int64_t>(i));
    values[i] = static_cast<Element>(static_cast<double>(stored));
  }
}

/// 2^ceil(log2(absmax / 448)) over the finite values, from 448 = 1.75 · 2^8.
template <class Element>
double scale_of(std::span<const Element> block) {
  double absmax = 0;
  for (const Element x : block) {
    const double size = std::abs(static_cast<double>(x));
    // NaN and ±inf get codes of their own and must not make other values vanish.
    if (std::isfinite(size)) absmax = std::max(absmax, size);
  }
  if (absmax == 0) return 1;  // every code is a zero then, and keeps its sign
  int exponent = 0;
  const double fraction = std::frexp(absmax, &exponent);  // absmax = fraction · 2^exponent
  constexpr double kTop = 0.875;                          // 448 = kTop · 2^9
  // The least subnormal of the type that the scale is stored in (Accumulator<Element>).
  const int least = dtype_of<Element> == DType::f64 ? -1074 : -149;
  // A fraction above kTop would round to more than 448, which e4m3 does not have: one power more.
  return std::ldexp(1.0, std::max(exponent - 9 + (fraction > kTop ? 1 : 0), least));
}

/// The e4m3 code of x / scale.
template <class Element>
std::uint8_t code_of(Element x, double scale) {
  const double value = static_cast<double>(x);
  // e4m3 has no infinity, so that ±inf cannot be told from NaN on this wire.
  if (!std::isfinite(value)) return Fp8E4M3(std::numeric_limits<double>::quiet_NaN()).bits;
  Fp8E4M3 code(value / scale);  // quotients by a power of two are exact unless they become zero
  const double limit = dtype_info(dtype_of<Element>).max_finite;
  // Codes of one sign are ordered like their bits.
  // The product would be infinite in Element. One code less in magnitude is one less in the bits,
  // whatever the sign: the sign is the top bit.
  if (std::abs(static_cast<double>(code)) * scale > limit) --code.bits;
  return code.bits;
}

template <class Element>
void encode_blocks(std::span<const Element> values, const ChannelRows& rows, std::byte* wire) {
  using Scale = Accumulator<Element>;
  // All scales first, then all codes, as the header shows.
  std::byte* codes = wire + rows.count * rows.blocks() * static_cast<std::int64_t>(sizeof(Scale));
  // Counts blocks over all rows; the last block of a row may be short, and none spans two rows.
  std::int64_t block = 0;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t c = 0; c < rows.channels; c += kWireBlock, ++block) {
      const std::int64_t first = row * rows.channels + c;
      const std::int64_t size = std::min(kWireBlock, rows.channels - c);
      const auto part =
          values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
      const double scale = scale_of(part);
      put(wire, block, static_cast<Scale>(scale));
      for (std::int64_t i = 0; i < size; ++i) {
        put(codes, first + i, code_of(part[static_cast<std::size_t>(i)], scale));
      }
    }
  }
}

template <class Element>
void decode_blocks(const std::byte* wire, const ChannelRows& rows, std::span<Element> values) {
  using Scale = Accumulator<Element>;
  const std::byte* codes =
      wire + rows.count * rows.blocks() * static_cast<std::int64_t>(sizeof(Scale));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const std::int64_t at = row * rows.channels + c;
      const Scale scale = get<Scale>(wire, row * rows.blocks() + c / kWireBlock);
      Fp8E4M3 code;
      code.bits = get<std::uint8_t>(codes, at);
      // The product is exact: four significant bits times a power of two, on the grid of Element.
      values[static_cast<std::size_t>(at)] =
          static_cast<Element>(static_cast<double>(code) * static_cast<double>(scale));
    }
  }
}

template <class Element>
std::span<Element> dense_values(const TensorView<Element>& tensor) {
  return {tensor.data, static_cast<std::size_t>(tensor.extents.size())};
}

}  // namespace

bool is_lossy(WireFormat format, DType dtype) {
  return effective_wire(format, dtype) != WireFormat::exact;
}

std::int64_t wire_bytes(WireFormat format, DType dtype, const Extents& extents) {
  const ChannelRows rows = rows_of(extents);
  const std::int64_t numbers = rows.count * rows.channels;
  // A format that is not narrower than the dtype has neither codes nor scales.
  const bool has_scales = effective_wire(format, dtype) == WireFormat::fp8;
  const std::int64_t scales = has_scales ? rows.count * rows.blocks() : 0;
  return numbers * dtype_info(wire_dtype(format, dtype)).bytes + scales * accumulator_bytes(dtype);
}

template <class Element>
void encode(WireFormat format, const TensorView<const Element>& tensor, std::span<std::byte> out) {
  assert(std::ssize(out) == wire_bytes(format, dtype_of<Element>, tensor.extents));
  assert(is_lossy(format, dtype_of<Element>));
  const std::span<const Element> values = dense_values(tensor);
  // `format` is the effective one: lossy was asserted, so exactly one of the three applies.
  if (format == WireFormat::f32) narrow<float>(values, out.data());
  if (format == WireFormat::bf16) narrow<BFloat16>(values, out.data());
  if (format == WireFormat::fp8) encode_blocks(values, rows_of(tensor.extents), out.data());
}

template <class Element>
void decode(WireFormat format, std::span<const std::byte> wire, const TensorView<Element>& tensor) {
  assert(std::ssize(wire) == wire_bytes(format, dtype_of<Element>, tensor.extents));
  assert(is_lossy(format, dtype_of<Element>));
  const std::span<Element> values = dense_values(tensor);
  if (format == WireFormat::f32) widen<float>(wire.data(), values);
  if (format == WireFormat::bf16) widen<BFloat16>(wire.data(), values);
  if (format == WireFormat::fp8) decode_blocks(wire.data(), rows_of(tensor.extents), values);
}

#define RINGLAB_WIRE_OF(Element)                                              \
  template void encode<Element>(WireFormat, const TensorView<const Element>&, \
                                std::span<std::byte>);                        \
  template void decode<Element>(WireFormat, std::span<const std::byte>, const TensorView<Element>&)
RINGLAB_WIRE_OF(double);
RINGLAB_WIRE_OF(float);
RINGLAB_WIRE_OF(Half);
RINGLAB_WIRE_OF(BFloat16);
#undef RINGLAB_WIRE_OF

}  // namespace ringlab::ring
