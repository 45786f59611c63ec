#include "reference/io/npy.h"

#include <array>
#include <cstring>
#include <span>

#include "reference/core/error.h"
#include "reference/io/elements.h"
#include "reference/io/input_file.h"
#include "reference/io/npy_header.h"

namespace ringlab::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestNpyHeader = 65536;
constexpr std::size_t kAlignment = 64;  // of the payload, as numpy does

// bf16 and fp8 have no name in numpy; byte types have no dtype, and f32 stands for none.
constexpr std::array<ElementType, 8> kNpyTypes = {{
    {"<f8", ElementKind::number, DType::f64},
    {"<f4", ElementKind::number, DType::f32},
    {"<f2", ElementKind::number, DType::f16},
    {">f8", ElementKind::number, DType::f64, true},
    {">f4", ElementKind::number, DType::f32, true},
    {">f2", ElementKind::number, DType::f16, true},
    {"|u1", ElementKind::byte, DType::f32},
    {"|b1", ElementKind::boolean, DType::f32},
}};

const ElementType& type_of_descr(const std::string& descr, const std::string& name) {
  for (const ElementType& type : kNpyTypes) {
    if (type.name == descr) return type;
  }
  throw_input_error({.where = name,
                     .expected = "dtype <f8, <f4, <f2 (or with >), |u1 or |b1",
                     .actual = "'" + printable(descr) + "'",
                     .hint = "Save it with .astype('<f4'); for bf16 use a .safetensors file"});
}

/// Takes bytes off the front; input error where the file ends before.
std::span<const std::byte> take(std::span<const std::byte>& rest, std::size_t count,
                                const std::string& what, const std::string& name) {
  if (count > rest.size()) {
    throw_input_error({.where = name,
                       .expected = what + " of " + std::to_string(count) + " bytes",
                       .actual = "the end of the file after " + std::to_string(rest.size())});
  }
  const auto taken = rest.first(count);
  rest = rest.subspan(count);
  return taken;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Takes magic, version and length off the front; returns the header's text. The length is checked
/// before anything is allocated for it.
std::string_view take_header(std::span<const std::byte>& rest, const std::string& name) {
  if (as_text(take(rest, kMagic.size(), "a .npy file: a magic string", name)) != kMagic) {
    throw_input_error({.where = name,
                       .expected = "a .npy file, which starts with \\x93NUMPY",
                       .actual = "other bytes",
                       .hint = "Write it with numpy.save"});
  }
  const auto version = take(rest, 2, "a version", name);
  const int major = std::to_integer<int>(version[0]);
  const int minor = std::to_integer<int>(version[1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw_input_error({.where = name,
                       .expected = "version 1.0, 2.0 or 3.0",
                       .actual = std::to_string(major) + "." + std::to_string(minor)});
  }
  // Version 1 has 16 bits for the length, later ones 32; little-endian, as this machine is.
  const auto length_bytes = take(rest, major == 1 ? 2 : 4, "a header length", name);
  std::uint32_t length = 0;
  std::memcpy(&length, length_bytes.data(), length_bytes.size());
  // Checks the length before it is used: a false one must not make anybody allocate.
  if (length > kLongestNpyHeader) {
    throw_input_error({.where = name,
                       .expected = "a header of at most 65536 bytes",
                       .actual = std::to_string(length)});
  }
  return as_text(take(rest, length, "a header", name));
}

/// Magic, version 1.0, length and header, padded so that the elements are aligned.
std::string preamble(const std::string& descr, const std::vector<std::int64_t>& shape) {
  std::string header = npy_header_text({descr, false, shape});
  const std::size_t prefix = kMagic.size() + 4;
  // numpy wants the whole preamble to be a multiple of 64 bytes, the line break included.
  while ((prefix + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string contents(kMagic);
  contents += '\x01';
  contents += '\0';
  contents += static_cast<char>(header.size() & 0xff);
  contents += static_cast<char>(header.size() >> 8);
  return contents + header;
}

/// Values of an array in column-major order, put in row-major order.
std::vector<double> in_rows(const std::vector<double>& columns,
                            const std::vector<std::int64_t>& shape) {
  // Strides of the file's order, the first index fastest; counted like an odometer.
  std::vector<std::int64_t> strides(shape.size(), 1), index(shape.size(), 0);
  for (std::size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
  std::vector<double> rows;
  rows.reserve(columns.size());
  std::int64_t at = 0;
  while (rows.size() < columns.size()) {
    rows.push_back(columns[static_cast<std::size_t>(at)]);
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return rows;
}

}  // namespace

// The size must be exact: a file with bytes too many is as suspicious as one cut off.
StoredTensor locate_npy(std::span<const std::byte> start, std::int64_t file_bytes,
                        const std::string& name) {
  std::span<const std::byte> rest = start;
  const NpyHeader header = parse_npy_header(take_header(rest, name), name);
  const ElementType& type = type_of_descr(header.descr, name);
  const std::int64_t begin = std::ssize(start) - std::ssize(rest);
  const std::int64_t wanted = checked_bytes(header.shape, element_bytes(type), name);
  if (wanted != file_bytes - begin) {
    throw_input_error({.where = name,
                       .expected = std::to_string(wanted) + " bytes of data for shape " +
                                   shape_text(header.shape),
                       .actual = std::to_string(file_bytes - begin),
                       .hint = "The file is cut off or has bytes too many"});
  }
  return {type, header.shape, begin, header.fortran_order};
}

FileTensor parse_npy(const std::vector<std::byte>& bytes, const std::string& name) {
  const StoredTensor stored = locate_npy(bytes, std::ssize(bytes), name);
  const auto data = std::span(bytes).subspan(static_cast<std::size_t>(stored.begin));
  FileTensor tensor = decode_elements(data, stored.type, stored.shape, name);
  if (stored.is_column_major) tensor.values = in_rows(tensor.values, tensor.shape);
  return tensor;
}

FileTensor read_npy(const std::filesystem::path& path, const ReadLimits& limits) {
  return parse_npy(read_file(path, limits.max_bytes), printable(path.string()));
}

DType npy_dtype(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f16 ? dtype : DType::f32;
}

std::string npy_contents(const FileTensor& tensor, const std::string& name) {
  const DType stored = npy_dtype(tensor.dtype);
  const std::string descr =
      tensor.is_byte ? "|u1" : "<f" + std::to_string(dtype_info(stored).bytes);
  std::string contents = preamble(descr, tensor.shape);
  append_elements(contents, tensor, stored, name);
  return contents;
}

std::string npy_preamble(DType stored, const std::vector<std::int64_t>& shape) {
  return preamble("<f" + std::to_string(dtype_info(stored).bytes), shape);
}

}  // namespace ringlab::io
