#include "reference/io/npz.h"

#include <zip.h>

#include <memory>
#include <utility>

#include "reference/core/error.h"
#include "reference/io/input_file.h"

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

/// Lives no longer than `bytes`.
Archive open_archive(const std::vector<std::byte>& bytes, const std::string& name) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive != nullptr) return Archive(archive);
  if (source != nullptr) zip_source_free(source);
  refuse(name, "a .npz file, which is a zip archive", why);
}

/// What the archive says of a file, before anything is allocated for it.
void check_size(const zip_stat_t& entry, std::int64_t max_bytes, const std::string& name) {
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  const bool is_known = (entry.valid & kNeeded) == kNeeded;
  const bool is_possible = is_known && entry.size / kMostOfDeflate <= entry.comp_size;
  if (!is_possible || entry.size > static_cast<std::uint64_t>(max_bytes)) {
    refuse(name, "at most " + std::to_string(max_bytes) + " bytes, and no more than was packed",
           is_known ? std::to_string(entry.size) : std::string("a file of unknown size"));
  }
}

std::vector<std::byte> unpacked(zip_t* archive, const zip_stat_t& entry, const std::string& name) {
  const ArchivedFile file(zip_fopen_index(archive, entry.index, 0));
  if (!file) refuse(name, "a file that can be unpacked", zip_strerror(archive));
  std::vector<std::byte> bytes(entry.size);
  std::byte beyond{};
  // The checksum is compared where the end is read.
  const bool is_whole =
      zip_fread(file.get(), bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size()) &&
      zip_fread(file.get(), &beyond, 1) == 0;
  if (!is_whole) refuse(name, "a whole file with its checksum", zip_file_strerror(file.get()));
  return bytes;
}

}  // namespace

std::map<std::string, std::vector<std::byte>> read_npz(const std::filesystem::path& path,
                                                       const std::set<std::string>& wanted,
                                                       std::int64_t max_bytes) {
  const std::string name = printable(path.string());
  const std::vector<std::byte> packed = read_file(path, max_bytes);
  const Archive archive = open_archive(packed, name);
  std::map<std::string, std::vector<std::byte>> files;
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
    check_size(entry, max_bytes, where);
    files[file.stem().string()] = unpacked(archive.get(), entry, where);
  }
  return files;
}

}  // namespace ringlab::io
