// .safetensors files as bytes.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "reference/io/tensor_file.h"

namespace ringlab::io {

/// Like parse_safetensors, but decodes only the tensors in `wanted`; the others are checked for
/// shape and place, and may be of any dtype of the format.
NamedTensors parse_safetensors_subset(const std::vector<std::byte>& bytes, const std::string& name,
                                      const std::set<std::string>& wanted);

/// The contents of a .safetensors file, tensors in order of their names, data on 8 bytes.
std::string safetensors_contents(const NamedTensors& tensors);

}  // namespace ringlab::io
