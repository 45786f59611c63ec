// Real text turned into q, k, v: bytes → seeded embedding → projections → rotary positions.
#pragma once

#include <cstdint>
#include <string>

#include "reference/core/run.h"

namespace ringlab::io {

struct TextOptions {
  std::int64_t max_tokens = 1024;  ///< one token per byte; the first ones are used
  std::int64_t q_heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 32;
  std::int64_t v_dim = 32;
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
};

struct TextInput {
  Problem problem;           ///< mask left full, bound to the length; scale 1/sqrt(head_dim)
  AttentionTensors tensors;  ///< values representable in dtype
  std::int64_t file_bytes = 0;
  std::int64_t tokens = 0;
};

/// Reads a regular file. Input error when it is missing or empty. Deterministic on every machine.
TextInput text_input(const std::string& path, const TextOptions& options);
TextInput text_input_from_bytes(const std::string& text, const TextOptions& options);

}  // namespace ringlab::io
