#include "reference/io/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "reference/core/error.h"
#include "reference/io/input_file.h"
#include "reference/io/npy.h"

namespace ringlab::io {
namespace {

constexpr std::uint64_t kMostOfDeflate = 1100;  // bytes out of one; 1032 is its limit

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using ArchivedFile = std::unique_ptr<zip_file_t, Close>;

[[noreturn]] void refuse(const std::string& name, const std::string& expected,
                         const std::string& found) {
  throw_input_error(
      {.where = name, .expected = expected, .actual = found, .hint = "Write it with numpy.savez"});
}

/// Refuses with libzip's words; throws bad_alloc for want of memory, no fault of the archive.
[[noreturn]] void refuse(const std::string& name, const std::string& expected, zip_error_t* error) {
  constexpr int kOfZlib = -4;  // Z_MEM_ERROR
  const int code = zip_error_code_zip(error);
  const bool is_memory =
      code == ZIP_ER_MEMORY || (code == ZIP_ER_ZLIB && zip_error_code_system(error) == kOfZlib);
  if (is_memory) throw std::bad_alloc();
  refuse(name, expected, std::string(zip_error_strerror(error)));
}

struct ZipError {
  ZipError() { zip_error_init(&value); }
  ~ZipError() { zip_error_fini(&value); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t value;
};

/// Opens the archive in `bytes`, which must outlive it; null when that failed.
Archive try_open(const std::vector<std::byte>& bytes, ZipError& error) {
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error.value);
  if (source == nullptr) return nullptr;
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY, &error.value);
  if (archive == nullptr) zip_source_free(source);
  return Archive(archive);
}

// libzip says "not a zip archive" also for want of memory: it is asked again once more memory than
// it takes was there.
Archive open_archive(const std::vector<std::byte>& bytes, const std::string& name) {
  ZipError first, second;
  if (Archive archive = try_open(bytes, first)) return archive;
  ::operator delete(::operator new(1 << 20));
  if (Archive archive = try_open(bytes, second)) return archive;
  refuse(name, "a .npz file, which is a zip archive", &second.value);
}

/// Refuses a file whose stated sizes or packing cannot be, before anything of it is unpacked.
void check_entry(const zip_stat_t& entry, std::uint64_t archive_bytes, std::uint64_t most_bytes,
                 const std::string& name) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded) refuse(name, "a file of known size", "none");
  const bool is_stored = entry.comp_method == ZIP_CM_STORE;
  const bool is_plain = entry.encryption_method == ZIP_EM_NONE;
  if (!is_plain || !(is_stored || entry.comp_method == ZIP_CM_DEFLATE)) {
    refuse(name, "a file as it is, or packed with deflate",
           is_plain ? "another way" : "a password");
  }
  if (entry.comp_size > archive_bytes) {
    refuse(name, "at most " + std::to_string(archive_bytes) + " packed bytes, the whole archive",
           std::to_string(entry.comp_size));
  }
  const bool is_possible =
      is_stored ? entry.size == entry.comp_size : entry.size / kMostOfDeflate <= entry.comp_size;
  if (!is_possible || entry.size > most_bytes) {
    refuse(name, "at most " + std::to_string(most_bytes) + " bytes, and no more than was packed",
           std::to_string(entry.size));
  }
}

/// Unpacks until `bytes` has `size` bytes.
void unpack_to(std::vector<std::byte>& bytes, std::size_t size, zip_file_t* file,
               const std::string& name) {
  std::size_t filled = bytes.size();
  bytes.resize(size);
  while (filled < size) {
    const zip_int64_t got = zip_fread(file, bytes.data() + filled, size - filled);
    if (got < 0) refuse(name, "a file that can be unpacked", zip_file_get_error(file));
    if (got == 0) {
      refuse(name, std::to_string(size) + " bytes, as the archive says",
             "its end after " + std::to_string(filled));
    }
    filled += static_cast<std::size_t>(got);
  }
}

/// The sizes may still be a lie, so memory grows with what was unpacked, and the array's own header
/// must agree before more than the first piece is.
std::vector<std::byte> unpacked(zip_t* archive, const zip_stat_t& entry, const std::string& name) {
  const ArchivedFile file(zip_fopen_index(archive, entry.index, 0));
  if (!file) refuse(name, "a file that can be unpacked", zip_get_error(archive));
  const std::size_t size = entry.size;
  std::vector<std::byte> bytes;
  unpack_to(bytes, std::min<std::size_t>(size, kLongestNpyStart), file.get(), name);
  locate_npy(bytes, static_cast<std::int64_t>(size), name);
  while (bytes.size() < size) {
    unpack_to(bytes, std::min(size, 2 * bytes.size()), file.get(), name);
  }
  std::byte beyond{};  // The checksum is compared where the end is read.
  const zip_int64_t more = zip_fread(file.get(), &beyond, 1);
  if (more < 0) refuse(name, "its checksum", zip_file_get_error(file.get()));
  if (more > 0) refuse(name, std::to_string(size) + " bytes, as the archive says", "more");
  return bytes;
}

}  // namespace

std::map<std::string, std::vector<std::byte>> parse_npz(const std::vector<std::byte>& packed,
                                                        const std::set<std::string>& wanted,
                                                        std::int64_t max_bytes,
                                                        const std::string& name) {
  const Archive archive = open_archive(packed, name);
  std::map<std::string, std::vector<std::byte>> files;
  auto left = static_cast<std::uint64_t>(max_bytes);
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t entry;
    zip_stat_init(&entry);
    const bool is_known =
        zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &entry) == 0;
    if (!is_known || entry.name == nullptr) continue;
    const std::filesystem::path file(entry.name);
    if (file.extension() != ".npy" || !wanted.contains(file.stem().string())) continue;
    if (file.has_parent_path()) continue;
    const std::string where = name + ", " + printable(entry.name);
    if (files.contains(file.stem().string())) refuse(where, "it once", "it twice");
    check_entry(entry, packed.size(), left, where);
    files[file.stem().string()] = unpacked(archive.get(), entry, where);
    left -= entry.size;
  }
  return files;
}

std::map<std::string, std::vector<std::byte>> read_npz(const std::filesystem::path& path,
                                                       const std::set<std::string>& wanted,
                                                       std::int64_t max_bytes) {
  return parse_npz(read_file(path, max_bytes), wanted, max_bytes, printable(path.string()));
}

}  // namespace ringlab::io
