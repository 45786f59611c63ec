// Calls of the small kernels around attention: row by row, or number by number.
#pragma once

#include <cstdint>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cuda {

/// Running states of `rows` rows, of `channels` accumulators each (a multiple of 2).
struct ClearStates {
  std::int64_t rows = 0;
  std::int32_t channels = 0;
  RunningState running;
};

/// Merges finished rows, out and lse, into some rows of a running state: rows first … first +
/// count - 1 of the `queries` of every head. An lse of -inf adds nothing, whatever out is.
template <class Element>
struct MergeRows {
  std::int64_t heads = 0;  ///< of all batches
  std::int32_t queries = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t channels = 0;     ///< a multiple of 2
  const Element* out = nullptr;  ///< (heads, count, channels)
  const float* lse = nullptr;    ///< (heads, count), natural
  RunningState running;          ///< of heads · queries rows
};

/// Adds rows to some rows of sums in f32: rows first … first + count - 1 of the `rows` of every
/// head.
template <class Element>
struct AddRows {
  std::int64_t heads = 0;  ///< of all batches
  std::int32_t rows = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t channels = 0;      ///< a multiple of 2
  const Element* from = nullptr;  ///< (heads, count, channels)
  float* to = nullptr;            ///< (heads, rows, channels)
};

/// Packs numbers of some rows of every head, one each, rows as in AddRows.
struct PackRows {
  std::int64_t heads = 0;
  std::int32_t rows = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  const float* from = nullptr;  ///< (heads, rows)
  float* to = nullptr;          ///< (heads, count)
};

/// Finishes rows of a running state. A row that saw nothing becomes 0 and -inf; a row whose sum is
/// NaN becomes NaN.
template <class Element>
struct FinishRows {
  std::int64_t rows = 0;
  std::int32_t channels = 0;  ///< a multiple of 2
  RunningState running;
  Element* out = nullptr;  ///< (rows, channels)
  float* lse = nullptr;    ///< (rows), natural
};

template <class Element>
struct DeltaRows {
  std::int64_t rows = 0;
  std::int32_t channels = 0;  ///< a multiple of 2
  const Element* out = nullptr;
  const Element* dout = nullptr;
  float* delta = nullptr;  ///< (rows)
};

template <class Element>
struct ScaleTo {
  std::int64_t count = 0;  ///< a multiple of 2
  const float* from = nullptr;
  float scale = 1;
  Element* to = nullptr;
};

}  // namespace ringlab::cuda
