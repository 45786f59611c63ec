// The formats of K and V on the wire, where they differ from those in memory.
//
// f32 and bf16: each value rounded to nearest even; values that are too large become ±inf.
//
// fp8: each (batch, head, token) is cut into blocks of 64 consecutive channels, the last one
// shorter. A block has one scale, the power of two 2^ceil(log2(absmax / 448)), so that dividing by
// it is exact and 448, the largest e4m3 number, is reached but not passed; then each value is an
// e4m3 code, rounded to nearest even. Scales below the least subnormal of their type are raised to
// it, which rounds nothing away: values are whole multiples of it then. A block of zeros has scale
// 1. A code that would widen to more than the largest finite number of the dtype is the next one
// towards zero. ±inf and NaN become NaN and leave their neighbours alone.
//
//     fp8 on the wire: scales (batch · heads · tokens, blocks), f32 (f64 for f64)
//                      codes  (batch · heads · tokens, channels), 1 byte
//
// Finite values within the range of the format thus obey
//
//     |decoded - x| <= u_wire |x| + wire_floor absmax + wire_underflow
//
// with the numbers of wire_profile() (reference/core/wire_profile.h; derived in docs/numerics.md).
// Signs of zeros and of values that round to zero are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/core/dtype.h"
#include "reference/core/run.h"
#include "reference/core/tensor.h"

namespace ringlab::ring {

/// Channels that share a scale in WireFormat::fp8.
inline constexpr std::int64_t kWireBlock = 64;

/// True when values of `dtype` lose bits on this wire. False where the format is exact or not
/// narrower: chunks then travel as they lie in memory.
bool is_lossy(WireFormat format, DType dtype);

/// Bytes of a dense tensor on the wire, scales included.
std::int64_t wire_bytes(WireFormat format, DType dtype, const Extents& extents);

/// Encodes a dense tensor in a lossy format. `out` has wire_bytes and any alignment.
template <class Element>
void encode(WireFormat format, const TensorView<const Element>& tensor, std::span<std::byte> out);
/// Decodes any bytes to some values; bytes of encode() to values within the bound above.
template <class Element>
void decode(WireFormat format, std::span<const std::byte> wire, const TensorView<Element>& tensor);

}  // namespace ringlab::ring
