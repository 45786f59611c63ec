// The JSON header of a .safetensors file: which tensor lies where, checked before it is believed.
// Source: the safetensors format (github.com/huggingface/safetensors, README "Format").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringlab::io {

/// A tensor of the file. Offsets count from the end of the header.
struct IndexEntry {
  std::string name;
  std::string dtype;  ///< as written: any dtype the format knows
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Entries in order of their offsets. Input error unless `json` starts with '{', is valid UTF-8
/// JSON at most 4 levels deep without repeated keys, every entry has exactly dtype, shape and
/// data_offsets, sizes agree with shapes, and the entries cover 0 … payload_bytes without gap or
/// overlap.
std::vector<IndexEntry> parse_safetensors_index(std::string_view json, std::int64_t payload_bytes,
                                                const std::string& where);

}  // namespace ringlab::io
