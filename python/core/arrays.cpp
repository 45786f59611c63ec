#include "python/core/arrays.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "reference/core/error.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using Code = nb::dlpack::dtype_code;
constexpr std::size_t kDimensions = 4;

constexpr nb::dlpack::dtype of(Code code, int bits) {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
}

template <class Element>
constexpr nb::dlpack::dtype element_type(Receiver receiver) {
  if constexpr (std::is_same_v<Element, BFloat16>) {
    return receiver == Receiver::numpy ? of(Code::UInt, 16) : of(Code::Bfloat, 16);
  } else {
    return of(Code::Float, 8 * static_cast<int>(sizeof(Element)));
  }
}

std::string dtype_text(const nb::dlpack::dtype& dtype) {
  constexpr std::array<const char*, 7> kNames = {"int",    "uint",    "float", "opaque",
                                                 "bfloat", "complex", "bool"};
  const std::string name = dtype.code < kNames.size() ? kNames[dtype.code] : "type";
  return fmt::format("{}{}{}", name, dtype.bits,
                     dtype.lanes == 1 ? "" : fmt::format(" in {} lanes", dtype.lanes));
}

std::optional<DType> dtype_of_array(const nb::dlpack::dtype& dtype, DType bits_as) {
  if (bits_as == DType::bf16 && dtype == of(Code::UInt, 16)) return DType::bf16;
  if (dtype == of(Code::Bfloat, 16)) return DType::bf16;
  if (dtype == of(Code::Float, 64)) return DType::f64;
  if (dtype == of(Code::Float, 32)) return DType::f32;
  if (dtype == of(Code::Float, 16)) return DType::f16;
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& name, std::string expected, std::string found,
                         std::string hint = "") {
  throw_input_error({name, std::move(expected), std::move(found), std::move(hint)});
}

DType checked_dtype(const std::string& name, const nb::ndarray<nb::ro>& array, DType bits_as) {
  const std::optional<DType> dtype = dtype_of_array(array.dtype(), bits_as);
  if (dtype) return *dtype;
  refuse(name, "float64, float32, float16 or bfloat16", dtype_text(array.dtype()));
}

Extents checked_extents(const std::string& name, const nb::ndarray<nb::ro>& array) {
  if (array.ndim() != kDimensions) {
    refuse(name, "4 dimensions: (batch, heads, tokens, head_dim)", fmt::format("{}", array.ndim()));
  }
  const std::int64_t* shape = array.shape_ptr();
  const Extents extents{shape[0], shape[1], shape[2], shape[3]};
  try {
    checked_size(extents);
  } catch (const Error& error) {
    refuse(name, error.parts().expected, error.parts().actual, error.parts().hint);
  }
  return extents;
}

/// The largest distance in bytes between two elements fits in 63 bits.
Strides checked_strides(const std::string& name, const nb::ndarray<nb::ro>& array,
                        const Extents& extents) {
  if (extents.size() == 0) return dense_strides(extents);
  std::int64_t reach = static_cast<std::int64_t>(array.itemsize());
  for (std::size_t i = 0; i < kDimensions; ++i) {
    std::int64_t distance = 0;
    const bool is_lost =
        array.stride(i) == INT64_MIN ||
        __builtin_mul_overflow(std::abs(array.stride(i)) * (array.shape_ptr()[i] > 1 ? 1 : 0),
                               array.shape_ptr()[i] - 1, &distance) ||
        __builtin_mul_overflow(distance, static_cast<std::int64_t>(array.itemsize()), &distance) ||
        __builtin_add_overflow(reach, distance, &reach);
    if (is_lost) {
      refuse(name, "strides that stay within memory", fmt::format("{}", array.stride(i)));
    }
  }
  return {array.stride(0), array.stride(1), array.stride(2), array.stride(3)};
}

void check_memory(const std::string& name, const nb::ndarray<nb::ro>& array,
                  const Extents& extents) {
  if (extents.size() == 0) return;
  if (array.data_handle() == nullptr) refuse(name, "data", "a null pointer");
  if (reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize() != 0) {
    refuse(name, fmt::format("elements aligned to {} bytes", array.itemsize()),
           "an address that is not", "Copy it.");
  }
}

}  // namespace

GivenArray checked_array(const std::string& name, nb::handle given, DType bits_as) {
  GivenArray array;
  if (!nb::try_cast(given, array.owner, false) || !array.owner.is_valid()) {
    refuse(name, "a NumPy array, or one that can be read through DLPack",
           nb::cast<std::string>(nb::str(given.type().attr("__name__"))));
  }
  if (array.owner.device_type() != nb::device::cpu::value) {
    refuse(name, "an array on the CPU",
           fmt::format("one on a device of DLPack's type {}", array.owner.device_type()),
           "Copy it to the CPU first.");
  }
  array.dtype = checked_dtype(name, array.owner, bits_as);
  array.extents = checked_extents(name, array.owner);
  array.strides = checked_strides(name, array.owner, array.extents);
  check_memory(name, array.owner, array.extents);
  return array;
}

Tensor<double> widened(const GivenArray& given) {
  return with_element_type(given.dtype, [&](auto element) {
    const auto view = given.view<decltype(element)>();
    Tensor<double> result(view.extents);
    double* next = result.values().data();
    for_each_index(view.extents, [&](auto b, auto h, auto t, auto c) {
      *next++ = static_cast<double>(view(b, h, t, c));
    });
    return result;
  });
}

template <class Element>
nb::object handed_over(Tensor<Element>&& tensor, Receiver receiver) {
  static Element nothing{};  // NumPy wants an address for no elements, too
  auto kept = std::make_unique<Tensor<Element>>(std::move(tensor));
  const Extents& e = kept->extents();
  const std::array<std::size_t, kDimensions> shape = {
      static_cast<std::size_t>(e.batch), static_cast<std::size_t>(e.heads),
      static_cast<std::size_t>(e.tokens), static_cast<std::size_t>(e.channels)};
  Element* data = kept->size() == 0 ? &nothing : kept->values().data();
  const nb::capsule owner(kept.get(), [](void* tensor_of_owner) noexcept {
    delete static_cast<Tensor<Element>*>(tensor_of_owner);
  });
  kept.release();
  const nb::dlpack::dtype dtype = element_type<Element>(receiver);
  constexpr int kCpu = nb::device::cpu::value;
  if (receiver == Receiver::numpy) {
    return nb::cast(
        nb::ndarray<nb::numpy>(data, kDimensions, shape.data(), owner, nullptr, dtype, kCpu),
        nb::rv_policy::reference);
  }
  return nb::cast(
      nb::ndarray<nb::array_api>(data, kDimensions, shape.data(), owner, nullptr, dtype, kCpu),
      nb::rv_policy::reference);
}

template nb::object handed_over(Tensor<double>&&, Receiver);
template nb::object handed_over(Tensor<float>&&, Receiver);
template nb::object handed_over(Tensor<Half>&&, Receiver);
template nb::object handed_over(Tensor<BFloat16>&&, Receiver);

}  // namespace ringlab::python
