#include "reference/io/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "reference/core/error.h"

namespace ringlab::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written little-endian");

constexpr std::size_t kMostExtents = 8;  // what any tensor here could have, with room
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;

/// Calls `visit` with the storage type of `dtype`, fp8 included.
template <class Visitor>
void with_storage_type(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(double{});
    case DType::f32:
      return visit(float{});
    case DType::f16:
      return visit(Half{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::fp8_e4m3:
      return visit(Fp8E4M3{});
    case DType::fp8_e5m2:
      return visit(Fp8E5M2{});
  }
}

std::vector<double> decode_numbers(std::span<const std::byte> bytes, DType dtype) {
  std::vector<double> values;
  with_storage_type(dtype, [&]<class Element>(Element element) {
    values.reserve(bytes.size() / sizeof(Element));
    // Copied out: elements of a file need not be aligned. How many bytes there must be was checked
    // before.
    for (std::size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
      std::memcpy(&element, bytes.data() + at, sizeof(Element));
      values.push_back(static_cast<double>(element));
    }
  });
  return values;
}

std::vector<std::byte> swapped(std::span<const std::byte> bytes, std::size_t each) {
  std::vector<std::byte> turned(bytes.begin(), bytes.end());
  for (std::size_t at = 0; at + each <= turned.size(); at += each) {
    std::reverse(turned.begin() + static_cast<std::ptrdiff_t>(at),
                 turned.begin() + static_cast<std::ptrdiff_t>(at + each));
  }
  return turned;
}

void append_numbers(std::string& out, const std::vector<double>& values, DType dtype) {
  with_storage_type(dtype, [&]<class Element>(Element element) {
    const std::size_t begin = out.size();
    out.resize(begin + values.size() * sizeof(Element));
    // Tensors hold numbers of their dtype (decision 2), so this cast rounds nothing.
    char* at = out.data() + begin;
    for (const double value : values) {
      element = static_cast<Element>(value);
      std::memcpy(at, &element, sizeof(Element));
      at += sizeof(Element);
    }
  });
}

void append_bytes(std::string& out, const std::vector<double>& values, const std::string& where) {
  for (const double value : values) {
    // Written so that NaN is refused, too.
    if (!(value >= 0 && value <= 255 && value == std::floor(value))) {
      throw_usage_error({.where = where,
                         .expected = "whole numbers in 0 … 255",
                         .actual = std::to_string(value)});
    }
    out.push_back(static_cast<char>(static_cast<unsigned char>(value)));
  }
}

}  // namespace

int element_bytes(const ElementType& type) {
  return type.kind == ElementKind::number ? dtype_info(type.dtype).bytes : 1;
}

std::int64_t checked_bytes(const std::vector<std::int64_t>& shape, int bytes_each,
                           const std::string& where) {
  bool fits = shape.size() <= kMostExtents;
  bool empty = false;
  std::int64_t bytes = bytes_each;
  for (const std::int64_t extent : shape) {
    fits = fits && extent >= 0 && extent <= kLargestExtent;
    // An extent of 0 must not hide an overflow of the others.
    fits = fits && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
    empty = empty || extent == 0;
  }
  if (!fits) {
    throw_input_error(
        {.where = where,
         .expected = "at most 8 extents of at most 2^40, fewer than 2^63 bytes in all",
         .actual = "shape " + shape_text(shape)});
  }
  return empty ? 0 : bytes;
}

FileTensor decode_elements(std::span<const std::byte> bytes, const ElementType& type,
                           std::vector<std::int64_t> shape, const std::string& where) {
  FileTensor tensor;
  tensor.shape = std::move(shape);
  if (type.kind == ElementKind::number) {
    tensor.dtype = type.dtype;
    tensor.values =
        type.is_swapped
            ? decode_numbers(swapped(bytes, static_cast<std::size_t>(element_bytes(type))),
                             type.dtype)
            : decode_numbers(bytes, type.dtype);
    return tensor;
  }
  tensor.is_byte = true;
  tensor.values.reserve(bytes.size());
  for (const std::byte byte : bytes) {
    const int value = std::to_integer<int>(byte);
    if (type.kind == ElementKind::boolean && value > 1) {
      throw_input_error({.where = where,
                         .expected = "booleans stored as 0 or 1",
                         .actual = std::to_string(value)});
    }
    tensor.values.push_back(value);
  }
  return tensor;
}

void append_elements(std::string& out, const FileTensor& tensor, DType dtype,
                     const std::string& where) {
  const int bytes_each = tensor.is_byte ? 1 : dtype_info(dtype).bytes;
  const std::int64_t bytes = checked_bytes(tensor.shape, bytes_each, where);
  // The number of values has to be that of the shape, an empty one too.
  if (bytes / bytes_each != static_cast<std::int64_t>(tensor.values.size())) {
    throw_usage_error({.where = where,
                       .expected = "as many values as shape " + shape_text(tensor.shape) + " has",
                       .actual = std::to_string(tensor.values.size())});
  }
  if (tensor.is_byte) {
    append_bytes(out, tensor.values, where);
  } else {
    append_numbers(out, tensor.values, dtype);
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  if (shape.size() == 1) text += ",";  // as Python writes a tuple of one
  return text + ")";
}

}  // namespace ringlab::io
