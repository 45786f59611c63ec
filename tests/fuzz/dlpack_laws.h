// What any description of an array does before we read what it describes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "python/core/dlpack_check.h"
#include "tests/fuzz/laws.h"

namespace ringlab::fuzz {

/// The bytes of an input, one after the other.
struct DlpackInput {
  std::uint64_t data = 0;
  std::uint64_t byte_offset = 0;
  std::array<std::int64_t, 4> shape = {};
  std::array<std::int64_t, 4> strides = {};
  std::int32_t device = 0;
  std::int32_t ndim = 0;
  python::DlType type = {};
  std::uint32_t major = 0;
  std::uint32_t flags = 0;  ///< bit 0: no strides, 1: no shape, 2: unsigned integers are bf16
  std::uint32_t unused = 0;
};
static_assert(sizeof(DlpackInput) == 104);

inline python::DlTensor described(DlpackInput& input) {
  return {.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(input.data)),
          .device = {input.device, 0},
          .ndim = input.ndim,
          .dtype = input.type,
          .shape = (input.flags & 2) != 0 ? nullptr : input.shape.data(),
          .strides = (input.flags & 1) != 0 ? nullptr : input.strides.data(),
          .byte_offset = input.byte_offset};
}

__extension__ using Wide = __int128;

/// Every element of an array lies within the address space and aligned: its corners do.
inline bool is_within_memory(const Extents& e, const Strides& s, Wide first, Wide element_bytes) {
  Wide low = first, high = first + element_bytes;
  const std::array<std::array<std::int64_t, 2>, 4> sides = {
      {{e.batch, s.batch}, {e.heads, s.head}, {e.tokens, s.token}, {e.channels, s.channel}}};
  for (const auto& [extent, stride] : sides) {
    // Of a side of 2^59 and a stride of 2^63, 2^125 bytes at most.
    const Wide reach = Wide{extent - 1} * stride * element_bytes;
    (reach < 0 ? low : high) += reach;
  }
  return low > 0 && high <= (Wide{1} << 64) && first % element_bytes == 0;
}

inline void require_readable(const python::CheckedDlTensor& array, const DlpackInput& input) {
  require(input.device == 1 && input.ndim == 4 && (input.flags & 2) == 0 && input.type.lanes == 1);
  require(dtype_info(array.dtype).bytes * 8 == input.type.bits);
  const std::array<std::int64_t, 4>& n = input.shape;
  require(array.extents == Extents{n[0], n[1], n[2], n[3]});
  if (checked_size(array.extents) == 0) return;
  const auto first = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(array.first));
  require(first == Wide{input.data} + Wide{input.byte_offset});
  require(is_within_memory(array.extents, array.strides, first, input.type.bits / 8));
}

/// An input error, or an array whose every element may be asked for.
inline bool dlpack_laws(const Bytes& bytes) {
  DlpackInput input;
  const std::size_t size = std::min(sizeof(input), bytes.size());
  if (size > 0) std::memcpy(static_cast<void*>(&input), bytes.data(), size);
  const python::DlTensor tensor = described(input);
  const python::DlManagedTensorVersioned managed{.major = input.major, .tensor = tensor};
  const bool known = accepts(ErrorKind::input, [&] { check_dlpack_version("k", managed); });
  require(known == (input.major == 1));
  python::CheckedDlTensor array;
  const DType bits_as = (input.flags & 4) != 0 ? DType::bf16 : DType::f32;
  const bool accepted =
      accepts(ErrorKind::input, [&] { array = python::checked_dltensor("k", tensor, bits_as); });
  if (accepted) require_readable(array, input);
  return accepted;
}

}  // namespace ringlab::fuzz
