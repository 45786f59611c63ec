// Memory that a kernel works on: a pointer and a length, the same on both machines.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#include "reference/core/host_device.h"
#include "reference/core/tensor.h"

namespace ringlab::stages {

/// A borrowed array. `Array<const T>` is an input, `Array<T>` an output (or both): that is how the
/// CUDA launcher knows what to copy back.
template <class T>
struct Array {
  T* data = nullptr;
  std::int64_t size = 0;

  RINGLAB_HD T& operator[](std::int64_t i) const {
    assert(i >= 0 && i < size);
    return data[i];
  }
  operator Array<const T>() const requires(!std::is_const_v<T>) { return {data, size}; }
};

/// A buffer (anything with data() and size()) as an array.
template <class Buffer>
auto array_of(Buffer& buffer) -> Array<std::remove_pointer_t<decltype(buffer.data())>> {
  return {buffer.data(), static_cast<std::int64_t>(buffer.size())};
}
/// A dense tensor as an array.
template <class T>
Array<T> array_of(const TensorView<T>& tensor) {
  return {tensor.data, tensor.extents.size()};
}

}  // namespace ringlab::stages
