// .safetensors files as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reference/io/elements.h"
#include "reference/io/tensor_file.h"

namespace ringlab::io {

/// Like parse_safetensors, but decodes only the tensors in `wanted`; the others are checked for
/// shape and place, and may be of any dtype of the format.
NamedTensors parse_safetensors_subset(const std::vector<std::byte>& bytes, const std::string& name,
                                      const std::set<std::string>& wanted);

/// The contents of a .safetensors file, tensors in order of their names, data on 8 bytes.
std::string safetensors_contents(const NamedTensors& tensors);

/// Bytes of a file of `file_bytes` up to its payload, from its first 8; input error when they
/// cannot be a length.
std::int64_t safetensors_preamble_bytes(std::span<const std::byte> first, std::int64_t file_bytes,
                                        const std::string& name);
/// The places of those tensors of `wanted` that are there, from that many bytes.
std::map<std::string, StoredTensor> locate_safetensors(std::span<const std::byte> preamble,
                                                       std::int64_t file_bytes,
                                                       const std::string& name,
                                                       const std::set<std::string>& wanted);

/// A tensor to come: `begin` counts from the start of the file.
struct PlannedTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
};
/// The bytes of a file before its payload, for tensors written later; fills in their `begin`.
std::string plan_safetensors(std::map<std::string, PlannedTensor>& tensors);

}  // namespace ringlab::io
