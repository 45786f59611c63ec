// Tensors (batch, heads, tokens, channels): strided views, and an owning dense tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/core/host_device.h"

namespace ringlab {

/// Shape of every tensor in ringlab. Any extent may be zero. An lse tensor has channels = 1.
struct Extents {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t channels = 0;

  RINGLAB_HD constexpr std::int64_t size() const { return batch * heads * tokens * channels; }
  friend constexpr bool operator==(const Extents&, const Extents&) = default;
};

/// Number of elements, or an input error when an extent is negative or there are too many to
/// address as doubles (2^59 or more, zero extents counted as one so that strides fit as well).
/// Use it on extents that come from outside.
std::int64_t checked_size(const Extents& extents);

/// Elements to step to reach the next batch, head, token, channel. Any sign, zero allowed.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t token = 0;
  std::int64_t channel = 0;
};

/// Row-major strides: channels innermost.
RINGLAB_HD constexpr Strides dense_strides(const Extents& e) {
  return {e.heads * e.tokens * e.channels, e.tokens * e.channels, e.channels, 1};
}

/// A borrowed tensor. Copying a view copies no data. Works on the device.
template <class T>
struct TensorView {
  T* data = nullptr;
  Extents extents;
  Strides strides;

  RINGLAB_HD std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t t,
                                 std::int64_t c) const {
    return b * strides.batch + h * strides.head + t * strides.token + c * strides.channel;
  }
  RINGLAB_HD T& operator()(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
    return data[offset(b, h, t, c)];
  }
  operator TensorView<const T>() const requires(!std::is_const_v<T>) {
    return {data, extents, strides};
  }
};

template <class T>
TensorView<T> dense_view(T* data, const Extents& extents) {
  return {data, extents, dense_strides(extents)};
}

/// An owning, dense, row-major tensor.
template <class T>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Extents& extents, const T& fill = T{})
      : extents_(extents), values_(static_cast<std::size_t>(checked_size(extents)), fill) {}

  const Extents& extents() const { return extents_; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  std::vector<T>& values() { return values_; }
  const std::vector<T>& values() const { return values_; }

  TensorView<T> view() { return dense_view(values_.data(), extents_); }
  TensorView<const T> view() const { return dense_view(values_.data(), extents_); }

  T& operator()(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
    return values_[index(b, h, t, c)];
  }
  const T& operator()(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
    return values_[index(b, h, t, c)];
  }

 private:
  std::size_t index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
    return static_cast<std::size_t>(
        ((b * extents_.heads + h) * extents_.tokens + t) * extents_.channels + c);
  }

  Extents extents_;
  std::vector<T> values_;
};

/// Calls `visit(b, h, t)` for every row, tokens fastest.
template <class Visitor>
void for_each_row(const Extents& e, Visitor&& visit) {
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t h = 0; h < e.heads; ++h)
      for (std::int64_t t = 0; t < e.tokens; ++t) visit(b, h, t);
}

/// Calls `visit(b, h, t, c)` for every index, channels fastest.
template <class Visitor>
void for_each_index(const Extents& e, Visitor&& visit) {
  for_each_row(e, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    for (std::int64_t c = 0; c < e.channels; ++c) visit(b, h, t, c);
  });
}

/// Copies row (b, h, t), converted to T, to numbers side by side from `to` on; returns their end.
template <class From, class T>
T* copy_row(const TensorView<From>& rows, std::int64_t b, std::int64_t h, std::int64_t t, T* to) {
  const From* const from = rows.data + rows.offset(b, h, t, 0);
  const std::int64_t channels = rows.extents.channels, stride = rows.strides.channel;
  if (stride == 1) {  // a loop of its own, of vectors
    for (std::int64_t c = 0; c < channels; ++c) to[c] = static_cast<T>(from[c]);
  } else {
    for (std::int64_t c = 0; c < channels; ++c) to[c] = static_cast<T>(from[c * stride]);
  }
  return to + channels;
}

/// A copy of the numbers of a view, converted to T, without gaps.
template <class T, class From>
Tensor<T> dense_copy(const TensorView<From>& from) {
  Tensor<T> to(from.extents);
  T* next = to.values().data();
  for_each_row(from.extents, [&](auto b, auto h, auto t) { next = copy_row(from, b, h, t, next); });
  return to;
}

}  // namespace ringlab
