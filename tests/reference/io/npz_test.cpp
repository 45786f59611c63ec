// Archives that say what is not so. What NumPy itself writes is in numpy_interop_test.cpp.
#include "reference/io/npz.h"

#include <sys/resource.h>
#include <zip.h>

#include <boost/crc.hpp>
#include <optional>

#include "reference/io/npy.h"
#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

constexpr std::int64_t kLimit = std::int64_t{16} << 30;

/// A file as an archive of version 2.0 states it; what is left out is as it should be.
struct Entry {
  std::string name;
  std::string bytes;  // as they lie in the archive
  int method = ZIP_CM_STORE;
  int flags = 0;
  std::optional<std::uint32_t> size = {}, packed = {}, checksum = {};
  std::string extra = {};
};

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i)) : char{0};
  return text;
}

std::string stated(const Entry& entry) {
  boost::crc_32_type checksum;
  checksum.process_bytes(entry.bytes.data(), entry.bytes.size());
  const auto bytes = static_cast<std::uint32_t>(entry.bytes.size());
  return number(entry.extra.empty() ? 20 : 45, 2) + number(entry.flags, 2) +
         number(entry.method, 2) + number(0, 4) +
         number(entry.checksum.value_or(checksum.checksum()), 4) +
         number(entry.packed.value_or(bytes), 4) + number(entry.size.value_or(bytes), 4) +
         number(entry.name.size(), 2) + number(entry.extra.size(), 2);
}

std::string end_of_archive(std::size_t entries, std::size_t bytes, std::size_t begin) {
  return "PK\5\6" + number(0, 4) + number(entries, 2) + number(entries, 2) + number(bytes, 4) +
         number(begin, 4) + number(0, 2);
}

std::string zipped(const std::vector<Entry>& entries) {
  std::string files, directory;
  for (const Entry& entry : entries) {
    directory += "PK\1\2" + number(20, 2) + stated(entry) + number(0, 10) +
                 number(files.size(), 4) + entry.name + entry.extra;
    files += "PK\3\4" + stated(entry) + entry.name + entry.extra + entry.bytes;
  }
  return files + directory + end_of_archive(entries.size(), directory.size(), files.size());
}

/// The sizes of a file beyond 32 bits, which then state 0xffffffff.
std::string zip64_sizes(std::uint64_t size, std::uint64_t packed) {
  return number(1, 2) + number(16, 2) + number(size, 8) + number(packed, 8);
}

std::string array_of(std::int64_t floats) {
  FileTensor tensor;
  tensor.shape = {1, floats};
  tensor.values.assign(static_cast<std::size_t>(floats), 0.0);
  return npy_contents(tensor, "q");
}

/// An archive of one file, packed with deflate; its directory is the last that starts with PK.
std::string packed(const std::string& name, const std::string& bytes) {
  zip_error_t error;
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  zip_set_file_compression(archive, 0, ZIP_CM_DEFLATE, 9);
  EXPECT_EQ(zip_close(archive), 0);
  zip_stat_t stat;
  zip_source_stat(target, &stat);
  std::string result(stat.size, '\0');
  zip_source_open(target);
  EXPECT_EQ(zip_source_read(target, result.data(), result.size()),
            static_cast<zip_int64_t>(result.size()));
  zip_source_close(target);
  zip_source_free(target);
  return result;
}

/// The same archive whose directory states another size of its only file.
std::string with_size(std::string archive, std::uint64_t size) {
  return archive.replace(archive.rfind("PK\1\2") + 24, 4, number(size, 4));
}

std::map<std::string, std::vector<std::byte>> parsed(const std::string& archive,
                                                     std::int64_t limit = kLimit) {
  return parse_npz(as_bytes(archive), {"q", "k"}, limit, "a.npz");
}

void expect_refused(const std::string& archive, const std::vector<std::string>& pieces) {
  expect_error(ErrorKind::input, pieces, [&] { parsed(archive); });
}

std::int64_t peak_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss * 1024;
}

TEST(Npz, files_that_are_whole_are_read) {
  const std::string array = array_of(6);
  const auto files =
      parsed(zipped({{.name = "q.npy", .bytes = array}, {.name = "x", .bytes = ""}}));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files.at("q"), as_bytes(array));
  EXPECT_EQ(parsed(packed("k.npy", array)).at("k"), as_bytes(array));
}

TEST(Npz, sizes_that_the_archive_cannot_hold_take_no_memory) {
  const std::string array = array_of(6);
  const std::int64_t before = peak_bytes();
  constexpr std::uint32_t kHuge = 0xfffff000;
  expect_refused(zipped({{.name = "q.npy", .bytes = array, .size = kHuge, .packed = kHuge}}),
                 {"a.npz, q.npy", "the whole archive", std::to_string(kHuge)});
  expect_refused(zipped({{.name = "q.npy",
                          .bytes = array,
                          .size = 0xffffffff,
                          .packed = 0xffffffff,
                          .extra = zip64_sizes(1ULL << 32, 1ULL << 32)}}),
                 {"the whole archive", "4294967296"});
  expect_refused(zipped({{.name = "q.npy", .bytes = array, .size = kHuge}}),
                 {"no more than was packed", std::to_string(kHuge)});
  expect_refused(with_size(packed("q.npy", array), kHuge), {"no more than was packed"});
  EXPECT_LT(peak_bytes() - before, 64 << 20);
}

// What is packed could be 1032 times as large, so a stated size is no more than a bound on it.
TEST(Npz, memory_grows_with_what_was_unpacked_not_with_what_was_stated) {
  constexpr std::int64_t kStated = std::int64_t{3} << 30;
  const std::string header = npy_preamble(DType::f32, {1, kStated / 4});
  const std::string noise(4 << 20, '\x55');
  const std::int64_t before = peak_bytes();
  std::string archive = packed("q.npy", header + noise);
  const std::string room = std::string(4 << 20, 'x');
  archive = room + archive;  // of which the directory could be talking
  const std::size_t directory = archive.rfind("PK\1\2");
  archive.replace(directory + 20, 4, number(4 << 20, 4));
  archive.replace(directory + 24, 4, number(kStated + header.size(), 4));
  archive.replace(directory + 42, 4, number(room.size(), 4));
  archive.replace(archive.size() - 6, 4, number(directory, 4));
  expect_refused(archive, {"a.npz, q.npy"});
  EXPECT_LT(peak_bytes() - before, 256 << 20);
}

TEST(Npz, a_file_is_as_long_as_its_header_says_before_it_is_unpacked) {
  const std::string header = npy_preamble(DType::f32, {1 << 20, 1 << 20});
  expect_refused(zipped({{.name = "q.npy", .bytes = header}}),
                 {"a.npz, q.npy", "4398046511104 bytes of data"});
  expect_refused(packed("q.npy", array_of(6) + std::string(64 << 20, '\0')), {"bytes too many"});
}

TEST(Npz, a_file_that_unpacks_to_more_or_less_than_stated_is_refused) {
  const std::string array = array_of(1 << 16);
  const std::string shorter = npy_preamble(DType::f32, {1, 6}) + std::string(100, '\0');
  expect_refused(with_size(packed("q.npy", shorter), shorter.size() - 76), {"found more"});
  const std::string longer = npy_preamble(DType::f32, {1, 106}) + std::string(400, '\0');
  expect_refused(with_size(packed("q.npy", longer), longer.size() + 24),
                 {"552 bytes, as", "its end after 528"});
  expect_refused(with_size(packed("q.npy", npy_preamble(DType::f32, {1, 106})), longer.size() + 24),
                 {"its end after 128"});
}

TEST(Npz, large_tensors_of_zeros_are_read_as_large_as_they_are) {
  const std::string array = array_of(4 << 20);
  const std::string archive = packed("q.npy", array);
  EXPECT_LT(archive.size(), array.size() / 1000);
  EXPECT_EQ(parsed(archive).at("q"), as_bytes(array));
}

TEST(Npz, files_together_have_one_limit) {
  const std::string array = array_of(100);
  const std::string archive =
      zipped({{.name = "q.npy", .bytes = array}, {.name = "k.npy", .bytes = array}});
  const auto both = static_cast<std::int64_t>(2 * array.size());
  EXPECT_EQ(parsed(archive, both).size(), 2u);
  expect_error(ErrorKind::input,
               {"k.npy", "at most " + std::to_string(array.size() - 1) + " bytes"},
               [&] { parsed(archive, both - 1); });
}

TEST(Npz, names_that_are_there_twice_are_refused_and_those_in_folders_are_others) {
  const std::string array = array_of(6);
  expect_refused(zipped({{.name = "q.npy", .bytes = array}, {.name = "q.npy", .bytes = array}}),
                 {"q.npy: expected it once, found it twice"});
  for (const std::string name : {"../q.npy", "/q.npy", "a/q.npy", "./q.npy", "..\\q.npy", "q.npy/",
                                 "q", ".npy", "q.npy.npy", "\xff.npy"}) {
    EXPECT_TRUE(parsed(zipped({{.name = name, .bytes = array}})).empty()) << name;
  }
  expect_refused(zipped({{.name = "a\033[2Jb", .bytes = array}, {.name = "q.npy", .bytes = ""}}),
                 {"q.npy"});
}

TEST(Npz, what_numpy_does_not_write_is_refused) {
  const std::string array = array_of(6);
  for (const int method : {1, 9, ZIP_CM_BZIP2, ZIP_CM_LZMA, 95}) {
    expect_refused(zipped({{.name = "q.npy", .bytes = array, .method = method}}), {"deflate"});
  }
  expect_refused(zipped({{.name = "q.npy", .bytes = array, .flags = 1}}), {"a password"});
  expect_refused(zipped({{.name = "q.npy", .bytes = array, .checksum = 1}}),
                 {"its checksum", "CRC"});
}

TEST(Npz, directories_that_lie_elsewhere_or_state_more_files_are_refused) {
  const std::string whole = zipped({{.name = "q.npy", .bytes = array_of(6)}});
  const std::string files = whole.substr(0, whole.size() - 22);
  const std::size_t directory = whole.rfind("PK\1\2");
  const std::size_t bytes = files.size() - directory;
  const std::vector<std::string> ends = {
      end_of_archive(0xffff, bytes, directory), end_of_archive(2, bytes, directory),
      end_of_archive(1, 0xfffffff0, directory), end_of_archive(1, bytes, 0xfffffff0),
      end_of_archive(1, bytes, directory + 1)};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    SCOPED_TRACE(i);
    expect_refused(files + ends[i], {"a zip archive"});
  }
  // Of 2^40 files, by the end of an archive beyond 32 bits.
  const std::string end64 = "PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) +
                            number(0, 8) + number(1ULL << 40, 8) + number(1ULL << 40, 8) +
                            number(bytes, 8) + number(directory, 8);
  const std::string locator = "PK\6\7" + number(0, 4) + number(files.size(), 8) + number(1, 4);
  expect_refused(files + end64 + locator + end_of_archive(0xffff, 0xffffffff, 0xffffffff),
                 {"a zip archive"});
  EXPECT_TRUE(parsed("").empty());
  expect_refused("PK", {"a zip archive"});
}

TEST(Npz, column_major_and_big_endian_arrays_are_read) {
  const std::string text = "{'descr': '>f2', 'fortran_order': True, 'shape': (2, 2), }\n";
  const std::string array = std::string("\x93NUMPY\x01\0", 8) + number(text.size(), 2) + text +
                            std::string("\x3c\0\x40\0\x42\0\x44\0", 8);
  const auto files = parsed(zipped({{.name = "q.npy", .bytes = array}}));
  EXPECT_EQ(parse_npy(files.at("q"), "q").values, (std::vector<double>{1, 3, 2, 4}));
}

}  // namespace
}  // namespace ringlab::io
