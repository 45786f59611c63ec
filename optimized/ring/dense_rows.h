// Rows of a rank without gaps, as kernels and transports need them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "optimized/ring/ends.h"
#include "reference/core/tensor.h"

namespace ringlab::ring {

/// The extents of a tensor with another number of tokens, those of a rank.
inline Extents with_tokens(Extents extents, std::int64_t tokens) {
  extents.tokens = tokens;
  return extents;
}

/// True for row-major tensors without gaps; strides over at most one element do not count.
template <class T>
bool is_dense(const TensorView<T>& view) {
  const Extents& e = view.extents;
  const Strides due = dense_strides(e);
  return e.size() == 0 || ((e.batch == 1 || view.strides.batch == due.batch) &&
                           (e.heads == 1 || view.strides.head == due.head) &&
                           (e.tokens == 1 || view.strides.token == due.token) &&
                           (e.channels == 1 || view.strides.channel == due.channel));
}

/// Rows as the kernels read them: each tensor where it lies if it is dense, else packed.
template <class Element>
RankRows<Element> dense_rows(RankRows<Element> rows) {
  struct Packed {
    std::shared_ptr<const void> owner;
    std::vector<Tensor<Element>> tensors;
  };
  const auto kept = std::make_shared<Packed>();
  kept->owner = rows.owner;
  kept->tensors.reserve(4);  // views of them are kept
  const auto pack = [&](TensorView<const Element>& view) {
    if (is_dense(view)) return;
    view = std::as_const(kept->tensors.emplace_back(dense_copy<Element>(view))).view();
  };
  pack(rows.q), pack(rows.k), pack(rows.v);
  if (rows.dout) pack(*rows.dout);
  rows.owner = kept;
  return rows;
}

}  // namespace ringlab::ring
