#include "python/core/dlpack_check.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "reference/core/error.h"

namespace ringlab::python {
namespace {

constexpr int kDimensions = 4;
constexpr std::int32_t kCpu = 1;  // kDLCPU
constexpr std::uint32_t kMajor = 1;

enum TypeCode : std::uint8_t { kUInt = 1, kFloat = 2, kBfloat = 4 };

[[noreturn]] void refuse(const std::string& name, std::string expected, std::string found,
                         std::string hint = "") {
  throw_input_error({name, std::move(expected), std::move(found), std::move(hint)});
}

std::string type_text(const DlType& type) {
  constexpr std::array<const char*, 7> kNames = {"int",    "uint",    "float", "opaque",
                                                 "bfloat", "complex", "bool"};
  const std::string name = type.code < kNames.size() ? kNames[type.code] : "type";
  return fmt::format("{}{}{}", name, type.bits,
                     type.lanes == 1 ? "" : fmt::format(" in {} lanes", type.lanes));
}

std::optional<DType> known_type(const DlType& type, DType bits_as) {
  if (type.lanes != 1) return std::nullopt;
  if (type.code == kUInt && type.bits == 16 && bits_as == DType::bf16) return DType::bf16;
  if (type.code == kBfloat && type.bits == 16) return DType::bf16;
  if (type.code != kFloat) return std::nullopt;
  if (type.bits == 64) return DType::f64;
  if (type.bits == 32) return DType::f32;
  if (type.bits == 16) return DType::f16;
  return std::nullopt;
}

DType checked_type(const std::string& name, const DlType& type, DType bits_as) {
  const std::optional<DType> dtype = known_type(type, bits_as);
  if (dtype) return *dtype;
  refuse(name, "float64, float32, float16 or bfloat16", type_text(type));
}

Extents checked_extents(const std::string& name, const DlTensor& tensor) {
  if (tensor.ndim != kDimensions) {
    refuse(name, "4 dimensions: (batch, heads, tokens, head_dim)", fmt::format("{}", tensor.ndim));
  }
  if (tensor.shape == nullptr) refuse(name, "a shape", "a null pointer");
  const Extents extents{tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]};
  try {
    checked_size(extents);
  } catch (const Error& error) {
    refuse(name, error.parts().expected, error.parts().actual, error.parts().hint);
  }
  return extents;
}

/// The distance in bytes that the elements reach from the first one, to either side.
struct ByteReach {
  std::uint64_t below = 0;
  std::uint64_t above = 0;  ///< to the end of the last element
};

ByteReach checked_reach(const std::string& name, const DlTensor& tensor,
                        std::uint64_t element_bytes) {
  ByteReach reach{.below = 0, .above = element_bytes};
  for (int i = 0; tensor.strides != nullptr && i < kDimensions; ++i) {
    const std::int64_t stride = tensor.strides[i];
    const auto steps = static_cast<std::uint64_t>(tensor.shape[i] - 1);
    if (steps == 0) continue;  // whatever one element strides over does not count
    // The magnitude of the least number, too, fits.
    std::uint64_t bytes =
        stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
    std::uint64_t& side = stride < 0 ? reach.below : reach.above;
    const bool is_lost = __builtin_mul_overflow(bytes, steps, &bytes) ||
                         __builtin_mul_overflow(bytes, element_bytes, &bytes) ||
                         __builtin_add_overflow(side, bytes, &side) || side > INT64_MAX;
    if (is_lost) refuse(name, "strides that stay within memory", fmt::format("{}", stride));
  }
  if (tensor.strides == nullptr) {  // below 2^59 elements
    reach.above = element_bytes * static_cast<std::uint64_t>(tensor.shape[0] * tensor.shape[1] *
                                                             tensor.shape[2] * tensor.shape[3]);
  }
  return reach;
}

const void* checked_first(const std::string& name, const DlTensor& tensor,
                          std::uint64_t element_bytes) {
  if (tensor.data == nullptr) refuse(name, "data", "a null pointer");
  const ByteReach reach = checked_reach(name, tensor, element_bytes);
  std::uint64_t first = 0, end = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset,
                             &first) ||
      tensor.byte_offset > std::uint64_t{PTRDIFF_MAX} || first <= reach.below ||
      __builtin_add_overflow(first, reach.above, &end)) {
    refuse(name, "strides that stay within memory",
           fmt::format("an array from {} bytes before {:#x} to {} after it", reach.below, first,
                       reach.above));
  }
  if (first % element_bytes != 0) {
    refuse(name, fmt::format("elements aligned to {} bytes", element_bytes),
           "an address that is not", "Copy it.");
  }
  // A pointer, not the sum, so that it stays one into the array.
  return static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
}

Strides strides_of(const DlTensor& tensor, const Extents& extents) {
  const std::int64_t* s = tensor.strides;
  return s == nullptr ? dense_strides(extents) : Strides{s[0], s[1], s[2], s[3]};
}

}  // namespace

CheckedDlTensor checked_dltensor(const std::string& name, const DlTensor& tensor, DType bits_as) {
  if (tensor.device.type != kCpu) {
    refuse(name, "an array on the CPU",
           fmt::format("one on a device of DLPack's type {}", tensor.device.type),
           "Copy it to the CPU first.");
  }
  CheckedDlTensor checked;
  checked.dtype = checked_type(name, tensor.dtype, bits_as);
  checked.extents = checked_extents(name, tensor);
  checked.strides = dense_strides(checked.extents);
  if (checked.extents.size() == 0) return checked;
  checked.first = checked_first(name, tensor, tensor.dtype.bits / 8u);
  checked.strides = strides_of(tensor, checked.extents);
  return checked;
}

void check_dlpack_version(const std::string& name, const DlManagedTensorVersioned& managed) {
  if (managed.major == kMajor) return;
  refuse(name, fmt::format("DLPack of version {}", kMajor), fmt::format("{}", managed.major));
}

}  // namespace ringlab::python
