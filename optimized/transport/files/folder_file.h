// A small file in a folder that others may write to: never reached through a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace ringlab {

/// Writes a file that nobody else has under the name `part`, and renames it to `file` when it is
/// complete. Environment error with `who` writes where that fails, also because `part` is there
/// already: as a file, or as a link to one.
void write_folder_file(const std::filesystem::path& part, const std::filesystem::path& file,
                       std::span<const std::byte> bytes, const std::string& who);

/// A file that is open for reading. Environment error where its name is that of a link, a pipe or a
/// folder, which somebody else may have put there.
class FolderFile {
 public:
  /// Nothing where there is none.
  static std::optional<FolderFile> open(const std::filesystem::path& path);
  FolderFile(FolderFile&& other) noexcept;
  FolderFile& operator=(FolderFile&&) = delete;
  ~FolderFile();

  std::int64_t size() const { return size_; }
  /// The first bytes.size() bytes; environment error where there are fewer.
  void read(std::span<std::byte> bytes) const;
  /// The whole file; environment error where it is longer than `most`.
  std::string text(std::int64_t most) const;

 private:
  FolderFile(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace ringlab
