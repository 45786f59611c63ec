#include "reference/io/npy.h"

#include <cmath>
#include <limits>

#include "reference/io/npy_header.h"
#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

constexpr const char* kGoodHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

std::string length_field(std::size_t length, int bytes) {
  std::string field;
  for (int i = 0; i < bytes; ++i) field += static_cast<char>(length >> (8 * i) & 0xff);
  return field;
}

std::string npy(const std::string& header, const std::string& payload, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += length_field(header.size(), version == 1 ? 2 : 4);
  return file + header + payload;
}

FileTensor parse(const std::string& file) { return parse_npy(as_bytes(file), "x.npy"); }

void rejects(const std::string& file, const std::vector<std::string>& pieces) {
  std::vector<std::string> all = pieces;
  all.push_back("x.npy");
  expect_error(ErrorKind::input, all, [&] { parse(file); });
}

std::string with_shape(const std::string& shape) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(Npy, every_dtype_comes_back_with_the_same_bits) {
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2}) {
    const DTypeInfo& info = dtype_info(dtype);
    const std::vector<double> values = {
        0.0, -0.0, 1.5, -info.max_finite, info.min_subnormal, info.min_normal};
    const FileTensor tensor{.dtype = dtype, .is_byte = false, .shape = {2, 3}, .values = values};
    const FileTensor back = parse(npy_contents(tensor, "x"));
    EXPECT_EQ(back.shape, tensor.shape);
    EXPECT_FALSE(back.is_byte);
    const bool native = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16;
    EXPECT_EQ(back.dtype, native ? dtype : DType::f32);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(back.values[i], values[i]) << info.name;
      EXPECT_EQ(std::signbit(back.values[i]), std::signbit(values[i]));
    }
  }
}

TEST(Npy, infinities_and_nan_come_back) {
  const double inf = std::numeric_limits<double>::infinity();
  const FileTensor tensor{
      .dtype = DType::f32, .is_byte = false, .shape = {3}, .values = {inf, -inf, std::nan("")}};
  const FileTensor back = parse(npy_contents(tensor, "x"));
  EXPECT_EQ(back.values[0], inf);
  EXPECT_EQ(back.values[1], -inf);
  EXPECT_TRUE(std::isnan(back.values[2]));
}

TEST(Npy, values_are_rounded_to_the_dtype_they_are_written_in) {
  const FileTensor tensor{
      .dtype = DType::f16, .is_byte = false, .shape = {1}, .values = {1.0 + 0x1p-12}};
  EXPECT_EQ(parse(npy_contents(tensor, "x")).values[0], 1.0);
}

TEST(Npy, bytes_and_booleans_are_bytes) {
  const FileTensor tensor{
      .dtype = DType::f32, .is_byte = true, .shape = {3}, .values = {0, 7, 255}};
  const FileTensor back = parse(npy_contents(tensor, "x"));
  EXPECT_TRUE(back.is_byte);
  EXPECT_EQ(back.values, tensor.values);
  const std::string header = "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(parse(npy(header, std::string("\x01\x00", 2))).values, (std::vector<double>{1, 0}));
  rejects(npy(header, "\x01\x02"), {"booleans", "found 2"});
}

TEST(Npy, any_shape_up_to_eight_dimensions_comes_back) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {1}, {0}, {5}, {0, 3}, {3, 0, 2}, {2, 3, 1, 2}, {1, 1, 1, 1, 1, 1, 1, 2}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    const FileTensor tensor{.dtype = DType::f32,
                            .is_byte = false,
                            .shape = shape,
                            .values = std::vector<double>(count, 2.5)};
    const FileTensor back = parse(npy_contents(tensor, "x"));
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(back.values, tensor.values);
  }
}

TEST(Npy, the_payload_starts_at_a_multiple_of_64_as_numpy_writes_it) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1}, {1, 1, 1, 1, 1}}) {
    const FileTensor tensor{.dtype = DType::f64, .is_byte = false, .shape = shape, .values = {1}};
    EXPECT_EQ((npy_contents(tensor, "x").size() - 8) % 64, 0u);
  }
}

TEST(Npy, versions_1_2_and_3_are_read_and_no_other) {
  const std::string payload(8, '\0');
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(parse(npy(kGoodHeader, payload, version)).shape, std::vector<std::int64_t>{2});
  }
  rejects(npy(kGoodHeader, payload, 0), {"version 1.0, 2.0 or 3.0", "0.0"});
  rejects(npy(kGoodHeader, payload, 4), {"4.0"});
  std::string minor = npy(kGoodHeader, payload);
  minor[7] = 1;
  rejects(minor, {"1.1"});
}

TEST(Npy, a_file_cut_off_anywhere_is_rejected) {
  const std::string whole = npy(kGoodHeader, std::string(8, '\0'));
  for (std::size_t length = 0; length < whole.size(); ++length)
    rejects(whole.substr(0, length), {});
}

TEST(Npy, other_files_are_rejected) {
  rejects("", {"magic"});
  rejects("PK\x03\x04 this is a zip file", {"numpy.save"});
  rejects(std::string(100, '\0'), {"numpy.save"});
}

TEST(Npy, a_header_longer_than_the_file_or_64_kib_is_rejected) {
  std::string file = npy(kGoodHeader, std::string(8, '\0'));
  file[8] = '\xff';
  file[9] = '\xff';
  rejects(file, {"65535 bytes", "end of the file"});
  std::string huge = npy(kGoodHeader, std::string(8, '\0'), 2);
  for (const int i : {8, 9, 10, 11}) huge[static_cast<std::size_t>(i)] = '\xff';
  rejects(huge, {"at most 65536", "4294967295"});
  const std::string padded = std::string(kGoodHeader) + std::string(65536, ' ');
  rejects(npy(padded, std::string(8, '\0'), 2), {"at most 65536"});
}

TEST(Npy, the_payload_is_exactly_as_long_as_the_shape_says) {
  rejects(npy(kGoodHeader, std::string(7, '\0')), {"8 bytes", "found 7"});
  rejects(npy(kGoodHeader, std::string(9, '\0')), {"8 bytes", "found 9"});
  rejects(npy(with_shape("()"), ""), {"4 bytes"});
  rejects(npy(with_shape("(0, 5)"), "x"), {"0 bytes"});
}

TEST(Npy, shapes_that_overflow_are_rejected_before_anything_is_allocated) {
  rejects(npy(with_shape("(1099511627776, 1099511627776)"), ""), {"2^63"});
  rejects(npy(with_shape("(1099511627776, 1099511627776, 0)"), ""), {"2^63"});
  rejects(npy(with_shape("(0, 1099511627776, 1099511627776)"), ""), {"2^63"});
  rejects(npy(with_shape("(4294967296, 4294967296)"), ""), {"2^63"});
  rejects(npy(with_shape("(1099511627777,)"), ""), {"2^40"});
  rejects(npy(with_shape("(9223372036854775807,)"), ""), {"2^40"});
  rejects(npy(with_shape("(1099511627776,)"), ""), {"4398046511104 bytes"});
  rejects(npy(with_shape("(18446744073709551616,)"), ""), {"extent"});
  rejects(npy(with_shape("(18446744073709551615,)"), ""), {"extent"});
  rejects(npy(with_shape("(-1,)"), ""), {"extent"});
  rejects(npy(with_shape("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "    "), {"at most 8"});
}

TEST(Npy, only_the_listed_dtypes_are_read) {
  for (const std::string descr : {">i4", "<i8", "|O", "<V2", "|V2", "<f16", "<c8", "<U3", "f4", "",
                                  "|S5", "<M8[ns]", "|i1"}) {
    rejects(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (), }", "\0\0\0\0"),
            {"dtype <f8", "'" + descr + "'", "astype"});
  }
  rejects(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", "    "),
          {"quoted string"});
}

TEST(Npy, columns_come_back_as_rows) {
  std::string payload;
  for (const float value : {0.f, 3.f, 1.f, 4.f, 2.f, 5.f}) {
    payload.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const FileTensor tensor =
      parse(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", payload));
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor.values, (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, the_highest_byte_may_come_first) {
  const std::string payload("\x3f\xc0\0\0\xc0\0\0\0", 8);
  EXPECT_EQ(parse(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", payload)).values,
            (std::vector<double>{1.5, -2}));
}

TEST(Npy, the_header_is_a_small_grammar_and_nothing_else) {
  const std::string payload(8, '\0');
  for (const std::string header : {
           "",
           " ",
           "{",
           "}",
           "[]",
           "{}",
           "{'descr'",
           "{'descr':",
           "{'descr': '<f4'",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (+2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (0x2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1+1,)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'extra': '1'}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }}",
           "{,'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
       }) {
    SCOPED_TRACE(header);
    rejects(npy(header, payload), {"of the header"});
  }
}

TEST(Npy, any_order_of_keys_both_quotes_and_loose_spaces_are_read) {
  const std::string header = "{ \"shape\":(2 , ),'fortran_order' :False ,  'descr':\"<f4\"}   \n";
  EXPECT_EQ(parse(npy(header, std::string(8, '\0'))).values, (std::vector<double>{0, 0}));
  EXPECT_EQ(parse_npy_header(with_shape("(3, 4,)"), "x").shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(parse_npy_header(with_shape("( )"), "x").shape, std::vector<std::int64_t>{});
}

TEST(Npy, the_header_text_is_read_back) {
  for (const bool order : {false, true}) {
    const NpyHeader header{"<f8", order, {4, 0, 7}};
    const NpyHeader back = parse_npy_header(npy_header_text(header), "x");
    EXPECT_EQ(back.descr, header.descr);
    EXPECT_EQ(back.fortran_order, order);
    EXPECT_EQ(back.shape, header.shape);
  }
}

TEST(Npy, control_bytes_of_a_file_never_reach_a_message) {
  try {
    parse(npy("{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (), }", "    "));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Npy, writing_needs_as_many_values_as_the_shape_has) {
  const FileTensor tensor{.dtype = DType::f32, .is_byte = false, .shape = {3}, .values = {1, 2}};
  expect_error(ErrorKind::usage, {"(3,)", "found 2"}, [&] { npy_contents(tensor, "x"); });
  for (const double value : {256.0, -1.0, 0.5, std::nan("")}) {
    const FileTensor byte{.dtype = DType::f32, .is_byte = true, .shape = {1}, .values = {value}};
    expect_error(ErrorKind::usage, {"0 … 255"}, [&] { npy_contents(byte, "x"); });
  }
}

}  // namespace
}  // namespace ringlab::io
