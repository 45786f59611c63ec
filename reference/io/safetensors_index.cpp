#include "reference/io/safetensors_index.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "reference/core/error.h"
#include "reference/io/elements.h"
#include "reference/io/input_file.h"
#include "reference/io/outside_json.h"

namespace ringlab::io {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits kLimits{
    .what = "header", .depth = 4, .keys = std::int64_t{1} << 20, .values = std::int64_t{1} << 24};

struct KnownDType {
  std::string_view name;
  int bytes;
};
constexpr std::array<KnownDType, 15> kKnownDTypes = {{{"BOOL", 1},
                                                      {"U8", 1},
                                                      {"I8", 1},
                                                      {"F8_E5M2", 1},
                                                      {"F8_E4M3", 1},
                                                      {"I16", 2},
                                                      {"U16", 2},
                                                      {"F16", 2},
                                                      {"BF16", 2},
                                                      {"I32", 4},
                                                      {"U32", 4},
                                                      {"F32", 4},
                                                      {"F64", 8},
                                                      {"I64", 8},
                                                      {"U64", 8}}};

[[noreturn]] void fail(const std::string& where, const std::string& expected,
                       const std::string& actual) {
  throw_input_error({.where = where, .expected = expected, .actual = actual});
}

/// A number that fits 63 bits; negative, fractional and huge ones are input errors.
std::int64_t whole_number(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
    fail(where, "whole numbers in 0 … 2^63-1", printable(value.dump().substr(0, 40)));
  }
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> whole_numbers(const Json& list, const std::string& where) {
  if (!list.is_array()) fail(where, "a list of whole numbers", list.type_name());
  std::vector<std::int64_t> numbers;
  for (const Json& each : list) numbers.push_back(whole_number(each, where));
  return numbers;
}

int bytes_of_dtype(const std::string& dtype, const std::string& where) {
  for (const KnownDType& known : kKnownDTypes) {
    if (known.name == dtype) return known.bytes;
  }
  fail(where, "a dtype of the safetensors format", "\"" + printable(dtype) + "\"");
}

/// An entry whose size agrees with its shape. Dtypes that attention does not take are fine here:
/// the file may hold other tensors.
IndexEntry read_entry(const std::string& name, const Json& value, const std::string& where) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets") || !value["dtype"].is_string()) {
    fail(where, "exactly dtype, shape and data_offsets",
         printable(value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80)));
  }
  IndexEntry entry{.name = name,
                   .dtype = value["dtype"].get<std::string>(),
                   .shape = whole_numbers(value["shape"], where + ", shape"),
                   .begin = 0,
                   .end = 0};
  const auto offsets = whole_numbers(value["data_offsets"], where + ", data_offsets");
  if (offsets.size() != 2) fail(where, "two data_offsets", std::to_string(offsets.size()));
  entry.begin = offsets[0];
  entry.end = offsets[1];
  const std::int64_t bytes = checked_bytes(entry.shape, bytes_of_dtype(entry.dtype, where), where);
  if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
    fail(where,
         std::to_string(bytes) + " bytes for " + entry.dtype + " of shape " +
             shape_text(entry.shape),
         "data_offsets " + std::to_string(entry.begin) + " … " + std::to_string(entry.end));
  }
  return entry;
}

void check_metadata(const Json& metadata, const std::string& where) {
  const bool texts = metadata.is_object() && std::ranges::all_of(metadata, [](const Json& value) {
                       return value.is_string();
                     });
  if (!texts) fail(where + ", __metadata__", "an object of strings", "something else");
}

/// Sorted by their offsets the tensors must touch: an overlap would let two tensors share bytes, a
/// gap could hide some.
void check_cover(std::vector<IndexEntry>& entries, std::int64_t payload_bytes,
                 const std::string& where) {
  std::ranges::sort(entries, [](const IndexEntry& a, const IndexEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::int64_t covered = 0;
  for (const IndexEntry& entry : entries) {
    if (entry.begin != covered) {
      fail(where, "tensor \"" + printable(entry.name) + "\" to start at " + std::to_string(covered),
           std::to_string(entry.begin) + (entry.begin < covered ? " (overlap)" : " (gap)"));
    }
    covered = entry.end;
  }
  if (covered != payload_bytes) {
    fail(where, std::to_string(covered) + " bytes of data", std::to_string(payload_bytes));
  }
}

}  // namespace

std::vector<IndexEntry> parse_safetensors_index(std::string_view json, std::int64_t payload_bytes,
                                                const std::string& where) {
  if (!json.starts_with('{')) fail(where, "a header that starts with '{'", "another byte");
  check_json(json, kLimits, where);
  const Json header = Json::parse(json);
  std::vector<IndexEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(value, where);
    } else {
      entries.push_back(read_entry(name, value, where + ", tensor \"" + printable(name) + "\""));
    }
  }
  check_cover(entries, payload_bytes, where);
  return entries;
}

}  // namespace ringlab::io
