// Parts of a tensor, by heads or by tokens, and dense copies of them as messages carry them.
#pragma once

#include <type_traits>

#include "reference/core/memory_meter.h"
#include "reference/core/tensor.h"

namespace ringlab::stages {

/// Heads first … first+count-1.
template <class T>
TensorView<T> heads_of(TensorView<T> all, std::int64_t first, std::int64_t count) {
  all.data += first * all.strides.head;
  all.extents.heads = count;
  return all;
}

/// Tokens first … first+count-1.
template <class T>
TensorView<T> tokens_of(TensorView<T> all, std::int64_t first, std::int64_t count) {
  all.data += first * all.strides.token;
  all.extents.tokens = count;
  return all;
}

/// A dense copy.
template <class T>
MeteredBuffer<std::remove_const_t<T>> packed(const TensorView<T>& part, MemoryMeter& meter) {
  MeteredBuffer<std::remove_const_t<T>> values(meter, part.extents.size());
  auto* next = values.data();
  for_each_index(part.extents, [&](auto... index) { *next++ = part(index...); });
  return values;
}

/// The other way.
template <class T>
void unpack(const MeteredBuffer<T>& values, const TensorView<T>& part) {
  const T* next = values.data();
  for_each_index(part.extents, [&](auto... index) { part(index...) = *next++; });
}

}  // namespace ringlab::stages
