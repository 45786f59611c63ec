// What a parser of untrusted bytes must do with any bytes at all. Shared by the fuzzers and the
// replay of their corpus.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "reference/io/npy.h"
#include "reference/io/safetensors.h"
#include "reference/io/tensor_file.h"
#include "tests/fuzz/laws.h"

namespace ringlab::io {

using fuzz::bytes_of_text;
using fuzz::require;

inline bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) {
      return false;
    }
  }
  return true;
}

inline bool same_tensor(const FileTensor& a, const FileTensor& b) {
  return a.shape == b.shape && a.is_byte == b.is_byte && (a.is_byte || a.dtype == b.dtype) &&
         same_values(a.values, b.values);
}

/// Rejects with an input error, or accepts and gives the same tensor after writing and reading.
/// Returns whether it accepted.
inline bool npy_laws(const std::vector<std::byte>& bytes) {
  FileTensor tensor;
  if (!fuzz::accepts(ErrorKind::input, [&] { tensor = parse_npy(bytes, "fuzz"); })) return false;
  require(tensor.values.size() <= bytes.size());
  require(same_tensor(parse_npy(bytes_of_text(npy_contents(tensor, "fuzz")), "fuzz"), tensor));
  return true;
}

inline bool safetensors_laws(const std::vector<std::byte>& bytes) {
  NamedTensors tensors;
  if (!fuzz::accepts(ErrorKind::input, [&] { tensors = parse_safetensors(bytes, "fuzz"); }))
    return false;
  std::size_t values = 0;
  for (const auto& [name, tensor] : tensors) values += tensor.values.size();
  require(values <= bytes.size());
  const NamedTensors back = parse_safetensors(bytes_of_text(safetensors_contents(tensors)), "fuzz");
  require(back.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) require(same_tensor(back.at(name), tensor));
  return true;
}

}  // namespace ringlab::io
