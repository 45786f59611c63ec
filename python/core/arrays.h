// Arrays of Python as tensors and back: NumPy and whatever else speaks DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "reference/core/dtype.h"
#include "reference/core/tensor.h"

namespace ringlab::python {

/// An array of the caller, checked by checked_dltensor(). Read where it lies.
struct GivenArray {
  nanobind::object source;                ///< kept for as long as its memory is read
  nanobind::ndarray<nanobind::ro> owner;  ///< calls DLPack's deleter
  DType dtype = DType::f32;
  Extents extents;
  Strides strides;
  const void* first = nullptr;

  /// `Element` must be the storage type of `dtype`.
  template <class Element>
  TensorView<const Element> view() const {
    return {static_cast<const Element*>(first), extents, strides};
  }
};

/// Input error naming the array where it is none, or one that does not fit. NumPy has no bf16 of
/// its own: with bits_as == bf16 16-bit unsigned integers are the bits of one.
GivenArray checked_array(const std::string& name, nanobind::handle given,
                         DType bits_as = DType::f32);

/// Every element, exactly. Needs no GIL.
Tensor<double> widened(const GivenArray& given);

/// The receiver of an array: NumPy (bf16 as 16-bit unsigned integers), or anybody with DLPack.
enum class Receiver { numpy, dlpack };

/// A new array of Python that owns `tensor`.
template <class Element>
nanobind::object handed_over(Tensor<Element>&& tensor, Receiver receiver);
extern template nanobind::object handed_over(Tensor<double>&&, Receiver);
extern template nanobind::object handed_over(Tensor<float>&&, Receiver);
extern template nanobind::object handed_over(Tensor<Half>&&, Receiver);
extern template nanobind::object handed_over(Tensor<BFloat16>&&, Receiver);

}  // namespace ringlab::python
