// Elements as they lie in files: bytes to doubles and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/io/tensor_file.h"

namespace ringlab::io {

enum class ElementKind { number, byte, boolean };

/// A way in which a file may store elements.
struct ElementType {
  std::string_view name;  ///< as the file writes it
  ElementKind kind = ElementKind::number;
  DType dtype = DType::f32;  ///< of numbers
  bool is_swapped = false;   ///< the highest byte first
};
int element_bytes(const ElementType& type);

/// A tensor that lies in a file and was not read: its elements begin at byte `begin`.
struct StoredTensor {
  ElementType type;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  bool is_column_major = false;  ///< the first index runs fastest
};

/// Product of the extents times the size of an element; input error when an extent is above 2^40,
/// there are more than 8, or the product does not fit in 63 bits (extents of 0 do not hide that).
std::int64_t checked_bytes(const std::vector<std::int64_t>& shape, int bytes_each,
                           const std::string& where);

/// Widens exactly. Input error for a boolean that is neither 0 nor 1.
FileTensor decode_elements(std::span<const std::byte> bytes, const ElementType& type,
                           std::vector<std::int64_t> shape, const std::string& where);

/// Appends the values rounded to `dtype`, or as bytes. Usage error when shape and number of values
/// disagree, or a byte is no whole number in 0 … 255.
void append_elements(std::string& out, const FileTensor& tensor, DType dtype,
                     const std::string& where);

/// "(2, 3)"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace ringlab::io
