#include "reference/io/safetensors.h"

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "reference/core/error.h"
#include "reference/io/elements.h"
#include "reference/io/input_file.h"
#include "reference/io/safetensors_index.h"

namespace ringlab::io {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kLengthBytes = 8;

constexpr std::array<ElementType, 8> kTypes = {{
    {"F64", ElementKind::number, DType::f64},
    {"F32", ElementKind::number, DType::f32},
    {"F16", ElementKind::number, DType::f16},
    {"BF16", ElementKind::number, DType::bf16},
    {"F8_E4M3", ElementKind::number, DType::fp8_e4m3},
    {"F8_E5M2", ElementKind::number, DType::fp8_e5m2},
    {"U8", ElementKind::byte, DType::f32},
    {"BOOL", ElementKind::boolean, DType::f32},
}};

const ElementType& find_type(const std::string& dtype, const std::string& where) {
  for (const ElementType& type : kTypes) {
    if (type.name == dtype) return type;
  }
  throw_input_error({.where = where,
                     .expected = "dtype F64, F32, F16, BF16, F8_E4M3, F8_E5M2, U8 or BOOL",
                     .actual = dtype});
}

std::string_view name_of_type(const FileTensor& tensor) {
  for (const ElementType& type : kTypes) {
    if (tensor.is_byte ? type.kind == ElementKind::byte : type.dtype == tensor.dtype) {
      return type.name;
    }
  }
  return "F32";
}

std::string_view header_text(std::span<const std::byte> preamble) {
  return {reinterpret_cast<const char*>(preamble.data()) + kLengthBytes,
          preamble.size() - kLengthBytes};
}

std::string_view name_of_dtype(DType dtype) {
  for (const ElementType& type : kTypes) {
    if (type.kind == ElementKind::number && type.dtype == dtype) return type.name;
  }
  return "F32";
}

/// Length, header and spaces to a multiple of 8, so that the payload is aligned.
std::string preamble_of(const nlohmann::json& header) {
  std::string text = header.dump();
  while (text.size() % kLengthBytes != 0) text += ' ';
  const std::uint64_t length = text.size();
  std::string preamble(kLengthBytes, '\0');
  std::memcpy(preamble.data(), &length, kLengthBytes);
  return preamble + text;
}

/// Decodes what `is_wanted` accepts.
template <class Predicate>
NamedTensors decode(std::span<const std::byte> bytes, const std::string& name,
                    Predicate&& is_wanted) {
  const auto begin =
      static_cast<std::size_t>(safetensors_preamble_bytes(bytes, std::ssize(bytes), name));
  const std::string_view header = header_text(bytes.first(begin));
  const auto payload = bytes.subspan(begin);
  NamedTensors tensors;
  for (const IndexEntry& entry : parse_safetensors_index(header, std::ssize(payload), name)) {
    if (!is_wanted(entry.name)) continue;
    const std::string where = name + ", tensor \"" + printable(entry.name) + "\"";
    const auto data = payload.subspan(static_cast<std::size_t>(entry.begin),
                                      static_cast<std::size_t>(entry.end - entry.begin));
    tensors[entry.name] = decode_elements(data, find_type(entry.dtype, where), entry.shape, where);
  }
  return tensors;
}

}  // namespace

NamedTensors parse_safetensors(const std::vector<std::byte>& bytes, const std::string& name) {
  return decode(bytes, name, [](const std::string&) { return true; });
}

NamedTensors parse_safetensors_subset(const std::vector<std::byte>& bytes, const std::string& name,
                                      const std::set<std::string>& wanted) {
  return decode(bytes, name, [&](const std::string& tensor) { return wanted.contains(tensor); });
}

NamedTensors read_safetensors(const std::filesystem::path& path, const ReadLimits& limits) {
  return parse_safetensors(read_file(path, limits.max_bytes), printable(path.string()));
}

// Tensors in the order of their names, as a std::map has them: equal tensors give equal bytes.
std::string safetensors_contents(const NamedTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string payload;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = payload.size();
    append_elements(payload, tensor, tensor.dtype, "tensor \"" + printable(name) + "\"");
    header[name] = {{"dtype", name_of_type(tensor)},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, payload.size()}}};
  }
  return preamble_of(header) + payload;
}

// The comparison with the file's size comes before any allocation: a length of 2^63 is only a
// number.
std::int64_t safetensors_preamble_bytes(std::span<const std::byte> first, std::int64_t file_bytes,
                                        const std::string& name) {
  std::uint64_t length = 0;
  const bool has_length = first.size() >= kLengthBytes;
  if (has_length) std::memcpy(&length, first.data(), kLengthBytes);
  if (!has_length || length > kLongestHeader ||
      length > static_cast<std::uint64_t>(file_bytes) - kLengthBytes) {
    throw_input_error({.where = name,
                       .expected = "a header length of 8 bytes, at most 100000000 and at most what "
                                   "follows it",
                       .actual = "length " + std::to_string(length) + " in a file of " +
                                 std::to_string(file_bytes) + " bytes",
                       .hint = "Is it a .safetensors file, and is it complete?"});
  }
  return static_cast<std::int64_t>(kLengthBytes + length);
}

std::map<std::string, StoredTensor> locate_safetensors(std::span<const std::byte> preamble,
                                                       std::int64_t file_bytes,
                                                       const std::string& name,
                                                       const std::set<std::string>& wanted) {
  std::map<std::string, StoredTensor> places;
  const std::int64_t begin = std::ssize(preamble);
  for (const IndexEntry& entry :
       parse_safetensors_index(header_text(preamble), file_bytes - begin, name)) {
    if (!wanted.contains(entry.name)) continue;
    const std::string where = name + ", tensor \"" + printable(entry.name) + "\"";
    places[entry.name] = {find_type(entry.dtype, where), entry.shape, begin + entry.begin};
  }
  return places;
}

std::string plan_safetensors(std::map<std::string, PlannedTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::int64_t end = 0;
  for (auto& [name, tensor] : tensors) {
    tensor.begin = end;
    end += checked_bytes(tensor.shape, dtype_info(tensor.dtype).bytes, name);
    header[name] = {{"dtype", name_of_dtype(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {tensor.begin, end}}};
  }
  std::string preamble = preamble_of(header);
  for (auto& [name, tensor] : tensors) tensor.begin += std::ssize(preamble);
  return preamble;
}

}  // namespace ringlab::io
