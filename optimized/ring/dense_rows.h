// Rows of a rank without gaps, as kernels and transports want them.
#pragma once

#include <cstdint>
#include <utility>

#include "reference/core/tensor.h"

namespace ringlab::ring {

/// The same tensor with a rank's tokens only.
inline Extents with_tokens(Extents extents, std::int64_t tokens) {
  extents.tokens = tokens;
  return extents;
}

/// Row-major without gaps; strides over at most one element do not count.
template <class T>
bool is_dense(const TensorView<T>& view) {
  const Extents& e = view.extents;
  const Strides due = dense_strides(e);
  return e.size() == 0 || ((e.batch == 1 || view.strides.batch == due.batch) &&
                           (e.heads == 1 || view.strides.head == due.head) &&
                           (e.tokens == 1 || view.strides.token == due.token) &&
                           (e.channels == 1 || view.strides.channel == due.channel));
}

/// A tensor as the kernels read it: where it lies if it is dense, else packed.
template <class Element>
class DenseRows {
 public:
  explicit DenseRows(const TensorView<const Element>& given) : view_(given) {
    if (is_dense(given)) return;
    packed_ = Tensor<Element>(given.extents);
    Element* next = packed_.values().data();
    for_each_index(given.extents,
                   [&](auto b, auto h, auto t, auto c) { *next++ = given(b, h, t, c); });
    view_ = std::as_const(packed_).view();
  }
  DenseRows(const DenseRows&) = delete;
  DenseRows& operator=(const DenseRows&) = delete;
  const TensorView<const Element>& view() const { return view_; }

 private:
  Tensor<Element> packed_;
  TensorView<const Element> view_;
};

}  // namespace ringlab::ring
