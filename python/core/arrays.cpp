#include "python/core/arrays.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "python/core/dlpack_check.h"
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

[[noreturn]] void refuse(const std::string& name, std::string expected, std::string found) {
  throw_input_error({name, std::move(expected), std::move(found), ""});
}

/// The array as DLPack's capsule, none where it gives no such thing.
nb::object exported(nb::handle given) {
  if (PyCapsule_CheckExact(given.ptr())) return nb::borrow(given);
  const nb::object method = nb::getattr(given.type(), "__dlpack__", nb::none());
  if (method.is_none()) return nb::none();
  const auto export_with = [&](const auto&... wishes) -> nb::object {
    try {
      return method(given, wishes...);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;  // KeyboardInterrupt
      return nb::none();
    }
  };
  // Without a version first: older NumPy refuses one with an error in whose making Python can lose
  // a KeyboardInterrupt. Arrays that are only read need a version.
  const nb::object capsule = export_with();
  return capsule.is_none() ? export_with(nb::arg("max_version") = nb::make_tuple(1, 1)) : capsule;
}

/// Checks what nanobind would read before it can be asked: DLPack's structures, while they are
/// still ours.
void check_capsule(const std::string& name, nb::handle capsule, DType bits_as) {
  const auto pointer_to = [&](const char* kind) -> void* {
    const bool is_one = PyCapsule_IsValid(capsule.ptr(), kind) != 0;
    return is_one ? PyCapsule_GetPointer(capsule.ptr(), kind) : nullptr;
  };
  if (const void* versioned = pointer_to("dltensor_versioned")) {
    const auto& managed = *static_cast<const DlManagedTensorVersioned*>(versioned);
    check_dlpack_version(name, managed);
    checked_dltensor(name, managed.tensor, bits_as);
  } else if (const void* plain = pointer_to("dltensor")) {
    checked_dltensor(name, static_cast<const DlManagedTensor*>(plain)->tensor, bits_as);
  }
}

/// DLPack's description of an array that nanobind holds: also one that came as a buffer.
CheckedDlTensor checked_owned(const std::string& name, const nb::ndarray<nb::ro>& array,
                              DType bits_as) {
  const nb::dlpack::dtype type = array.dtype();
  return checked_dltensor(name,
                          {.data = const_cast<void*>(array.data()),
                           .device = {array.device_type(), array.device_id()},
                           .ndim = static_cast<std::int32_t>(array.ndim()),
                           .dtype = {type.code, type.bits, type.lanes},
                           .shape = const_cast<std::int64_t*>(array.shape_ptr()),
                           .strides = const_cast<std::int64_t*>(array.stride_ptr()),
                           .byte_offset = 0},
                          bits_as);
}

}  // namespace

GivenArray checked_array(const std::string& name, nb::handle given, DType bits_as) {
  GivenArray array;
  array.source = nb::borrow(given);
  const nb::object capsule = exported(given);
  if (!capsule.is_none()) check_capsule(name, capsule, bits_as);
  const nb::handle readable = capsule.is_none() ? given : nb::handle(capsule);
  if (!nb::try_cast(readable, array.owner, false) || !array.owner.is_valid()) {
    refuse(name, "a NumPy array, or one that can be read through DLPack",
           nb::cast<std::string>(nb::str(given.type().attr("__name__"))));
  }
  const CheckedDlTensor checked = checked_owned(name, array.owner, bits_as);
  array.dtype = checked.dtype;
  array.extents = checked.extents;
  array.strides = checked.strides;
  array.first = checked.first;
  return array;
}

Tensor<double> widened(const GivenArray& given) {
  return with_element_type(given.dtype, [&](auto element) {
    return dense_copy<double>(given.view<decltype(element)>());
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
