// One rank's rows, given and wanted as doubles, in the type that is computed in and back.
#pragma once

#include <type_traits>
#include <utility>

#include "optimized/ring/engine.h"
#include "optimized/ring/native.h"

namespace ringlab::ring {

template <class To, class From>
Tensor<To> converted(const TensorView<const From>& from) {
  Tensor<To> to(from.extents);
  To* next = to.values().data();
  for_each_index(from.extents, [&](auto b, auto h, auto t, auto c) {
    *next++ = static_cast<To>(from(b, h, t, c));
  });
  return to;
}

template <class From>
Tensor<double> widened(Tensor<From>&& from) {
  if constexpr (std::is_same_v<From, double>) {
    return std::move(from);
  } else {
    return converted<double>(std::as_const(from).view());
  }
}

/// Owns a rank's rows in the problem's dtype.
template <class Element>
struct NarrowRows {
  Tensor<Element> q, k, v;
  std::optional<Tensor<Element>> dout;

  explicit NarrowRows(const ShardInput& shard)
      : q(converted<Element>(shard.q)),
        k(converted<Element>(shard.k)),
        v(converted<Element>(shard.v)) {
    if (shard.dout) dout = converted<Element>(*shard.dout);
  }
  NativeShard<Element> shard() const {
    NativeShard<Element> shard{.q = q.view(), .k = k.view(), .v = v.view()};
    if (dout) shard.dout = dout->view();
    return shard;
  }
};

template <class Element>
ShardResult widened_result(NativeResult<Element>&& native) {
  ShardResult result{.output = {widened(std::move(native.out)), widened(std::move(native.lse))},
                     .gradients = {},
                     .stats = std::move(native.stats),
                     .seconds = native.seconds};
  if (native.gradients) {
    result.gradients = {widened(std::move(native.gradients->dq)),
                        widened(std::move(native.gradients->dk)),
                        widened(std::move(native.gradients->dv))};
  }
  return result;
}

}  // namespace ringlab::ring
