#include "reference/io/safetensors.h"

#include <cmath>

#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

std::string file_of(const std::string& json, const std::string& payload) {
  const std::uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + payload;
}

NamedTensors parse_st(const std::string& file) { return parse_safetensors(as_bytes(file), "x.st"); }

void rejects_st(const std::string& file, const std::vector<std::string>& pieces) {
  std::vector<std::string> all = pieces;
  all.push_back("x.st");
  expect_error(ErrorKind::input, all, [&] { parse_st(file); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, every_dtype_comes_back_with_the_same_bits) {
  NamedTensors tensors;
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2}) {
    const DTypeInfo& info = dtype_info(dtype);
    tensors[std::string(info.name)] = {
        .dtype = dtype,
        .is_byte = false,
        .shape = {5, 1},
        .values = {-0.0, 1.25, info.max_finite, -info.min_subnormal, info.min_normal}};
  }
  tensors["bytes"] = {.dtype = DType::f32, .is_byte = true, .shape = {2}, .values = {0, 255}};
  tensors["empty"] = {.dtype = DType::f32, .is_byte = false, .shape = {0, 4}, .values = {}};
  tensors["scalar"] = {.dtype = DType::f32, .is_byte = false, .shape = {}, .values = {3}};
  const NamedTensors back = parse_st(safetensors_contents(tensors));
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const FileTensor& read = back.at(name);
    EXPECT_EQ(read.shape, tensor.shape) << name;
    EXPECT_EQ(read.values, tensor.values) << name;
    EXPECT_EQ(read.is_byte, tensor.is_byte) << name;
    EXPECT_TRUE(tensor.is_byte || read.dtype == tensor.dtype) << name;
    if (name != "bytes" && !read.values.empty()) {
      EXPECT_EQ(std::signbit(read.values[0]), std::signbit(tensor.values[0])) << name;
    }
  }
}

TEST(Safetensors, a_file_without_tensors_is_a_file) {
  EXPECT_TRUE(parse_st(safetensors_contents({})).empty());
  EXPECT_TRUE(parse_st(file_of("{\"__metadata__\":{\"format\":\"pt\"}}", "")).empty());
}

TEST(Safetensors, names_are_any_text) {
  const FileTensor one{.dtype = DType::f32, .is_byte = false, .shape = {1}, .values = {1}};
  const NamedTensors tensors = {{"model/0.q\"\\", one}, {"größe\n", one}};
  EXPECT_EQ(parse_st(safetensors_contents(tensors)).size(), 2u);
}

TEST(Safetensors, a_file_cut_off_anywhere_is_rejected) {
  const std::string whole = file_of("{" + entry("q", "F32", "[2]", "[0,8]") + "}", "12345678");
  EXPECT_EQ(parse_st(whole).size(), 1u);
  for (std::size_t length = 0; length < whole.size(); ++length)
    rejects_st(whole.substr(0, length), {});
  rejects_st(whole + "9", {"8 bytes of data", "found 9"});
}

TEST(Safetensors, a_header_length_beyond_the_file_or_100_mb_is_rejected) {
  std::string file = file_of("{}", "");
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0},
        ~std::uint64_t{7}}) {
    std::memcpy(file.data(), &length, 8);
    rejects_st(file, {"header length", std::to_string(length)});
  }
}

TEST(Safetensors, the_header_starts_with_a_brace_and_is_json) {
  rejects_st(file_of("", ""), {"'{'"});
  rejects_st(file_of(" {}", ""), {"'{'"});
  rejects_st(file_of("[]", ""), {"'{'"});
  rejects_st(file_of("\xef\xbb\xbf{}", ""), {"'{'"});
  rejects_st(file_of("{", ""), {"JSON"});
  rejects_st(file_of("{}}", ""), {"JSON"});
  rejects_st(file_of("{} x", ""), {"JSON"});
  rejects_st(file_of(std::string("{}\0", 3), ""), {"JSON"});
  rejects_st(file_of("{\"\xff\":1}", ""), {"JSON"});
  rejects_st(file_of("{\"a\":NaN}", ""), {"JSON"});
  EXPECT_TRUE(parse_st(file_of("{}      ", "")).empty());
}

TEST(Safetensors, deep_headers_are_rejected_without_recursion) {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 200000; ++i) deep += '[';
  rejects_st(file_of(deep, ""), {"4 levels"});
  rejects_st(file_of("{\"a\":{\"b\":[[[]]]}}", ""), {"4 levels"});
}

TEST(Safetensors, repeated_keys_are_rejected_on_every_level) {
  const std::string q = entry("q", "U8", "[1]", "[0,1]");
  rejects_st(file_of("{" + q + "," + q + "}", "1"), {"\"q\" twice"});
  rejects_st(file_of("{\"q\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
                     "\"data_offsets\":[0,1]}}",
                     "1"),
             {"\"dtype\" twice"});
  rejects_st(file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", ""), {"\"a\" twice"});
  const std::string two = entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[1,2]");
  EXPECT_EQ(parse_st(file_of("{" + two + "}", "12")).size(), 2u);
}

TEST(Safetensors, tensors_cover_the_data_without_gap_or_overlap) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{" + entry("a", "U8", "[2]", first) + "," + entry("b", "U8", "[2]", second) + "}";
  };
  EXPECT_EQ(parse_st(file_of(two("[0,2]", "[2,4]"), "1234")).size(), 2u);
  EXPECT_EQ(parse_st(file_of(two("[2,4]", "[0,2]"), "1234")).size(), 2u);
  rejects_st(file_of(two("[0,2]", "[1,3]"), "123"), {"overlap"});
  rejects_st(file_of(two("[0,2]", "[0,2]"), "12"), {"overlap"});
  rejects_st(file_of(two("[0,2]", "[3,5]"), "12345"), {"gap"});
  rejects_st(file_of(two("[1,3]", "[3,5]"), "12345"), {"gap"});
  rejects_st(file_of(two("[0,2]", "[2,4]"), "12345"), {"4 bytes of data", "found 5"});
  rejects_st(file_of(two("[0,2]", "[2,4]"), "123"), {"4 bytes of data", "found 3"});
  rejects_st(file_of("{}", "1"), {"0 bytes of data"});
}

TEST(Safetensors, sizes_agree_with_shapes_and_offsets_are_in_order) {
  rejects_st(file_of("{" + entry("q", "F32", "[2]", "[0,4]") + "}", "1234"), {"8 bytes", "\"q\""});
  rejects_st(file_of("{" + entry("q", "F32", "[1]", "[4,0]") + "}", "1234"), {"4 … 0"});
  rejects_st(file_of("{" + entry("q", "F32", "[1]", "[0]") + "}", "1234"), {"two data_offsets"});
  rejects_st(file_of("{" + entry("q", "F32", "[1]", "[0,4,4]") + "}", "1234"),
             {"two data_offsets"});
}

TEST(Safetensors, numbers_are_whole_and_not_negative) {
  for (const std::string number : {"-1", "1.0", "1e0", "\"1\"", "null", "true", "[1]", "-0",
                                   "18446744073709551615", "18446744073709551616"}) {
    SCOPED_TRACE(number);
    rejects_st(file_of("{" + entry("q", "U8", "[" + number + "]", "[0,1]") + "}", "1"),
               {"whole number"});
    rejects_st(file_of("{" + entry("q", "U8", "[1]", "[0," + number + "]") + "}", "1"),
               {"whole number"});
  }
}

TEST(Safetensors, shapes_that_overflow_are_rejected) {
  for (const std::string shape :
       {"[1099511627776,1099511627776]", "[1099511627777]", "[4294967296,4294967296,0]",
        "[1,1,1,1,1,1,1,1,1]", "[9223372036854775807,2]"}) {
    rejects_st(file_of("{" + entry("q", "F32", shape, "[0,0]") + "}", ""), {"2^63"});
  }
}

TEST(Safetensors, an_entry_has_exactly_its_three_keys) {
  rejects_st(file_of("{\"q\":1}", ""), {"exactly dtype"});
  rejects_st(file_of("{\"q\":[]}", ""), {"exactly dtype"});
  rejects_st(file_of("{\"q\":{}}", ""), {"exactly dtype"});
  rejects_st(file_of("{\"q\":{\"dtype\":\"U8\",\"shape\":[0]}}", ""), {"exactly dtype"});
  rejects_st(file_of("{\"q\":{\"dtype\":1,\"shape\":[0],\"data_offsets\":[0,0]}}", ""),
             {"exactly dtype"});
  rejects_st(file_of("{\"q\":{\"dtype\":\"U8\",\"shape\":0,\"data_offsets\":[0,0]}}", ""),
             {"list"});
  rejects_st(file_of("{\"q\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}", ""),
             {"exactly dtype"});
  rejects_st(file_of("{\"__metadata__\":{\"a\":1}}", ""), {"__metadata__"});
  rejects_st(file_of("{\"__metadata__\":\"a\"}", ""), {"__metadata__"});
}

TEST(Safetensors, dtypes_are_those_of_the_format_and_those_we_compute_with) {
  rejects_st(file_of("{" + entry("q", "F33", "[0]", "[0,0]") + "}", ""), {"F33"});
  rejects_st(file_of("{" + entry("q", "I64", "[1]", "[0,8]") + "}", "12345678"), {"I64", "BF16"});
  rejects_st(file_of("{" + entry("q", "BOOL", "[1]", "[0,1]") + "}", "\x07"), {"booleans"});
}

TEST(Safetensors, tensors_nobody_asked_for_are_checked_but_not_decoded) {
  const std::string json =
      "{" + entry("ids", "I64", "[1]", "[0,8]") + "," + entry("q", "U8", "[1]", "[8,9]") + "}";
  const NamedTensors read =
      parse_safetensors_subset(as_bytes(file_of(json, "12345678\x05")), "x.st", {"q", "other"});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.at("q").values, std::vector<double>{5});
}

}  // namespace
}  // namespace ringlab::io
