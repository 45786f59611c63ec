// Memory that vectors can be loaded from whole.
#pragma once

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace ringlab::cpu {

template <class T>
using AlignedArray = hwy::AlignedFreeUniquePtr<T[]>;

/// `count` elements, not initialised, at the start of a cache line. Throws std::bad_alloc.
template <class T>
AlignedArray<T> aligned_array(std::int64_t count) {
  AlignedArray<T> array =
      hwy::AllocateAligned<T>(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)));
  if (!array) throw std::bad_alloc();
  return array;
}

}  // namespace ringlab::cpu
