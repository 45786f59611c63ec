// Regular files, opened with suspicion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ringlab::io {

/// A regular file open for reading. Links are followed (model files are often links), but what they
/// lead to must be a regular file: a directory, pipe or device is an input error, as is a missing
/// or unreadable file. Move-less: it lives in one scope.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }
  /// The first `count` bytes, count <= size(). Input error when the file shrank meanwhile.
  std::vector<std::byte> read(std::int64_t count) const { return read_at(0, count); }
  /// `count` bytes from `offset` on, all of them within size().
  std::vector<std::byte> read_at(std::int64_t offset, std::int64_t count) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// All of a file of at most `max_bytes`; the size is compared before anything is allocated.
std::vector<std::byte> read_file(const std::filesystem::path& path, std::int64_t max_bytes);

/// A name from a file, fit for a message: control bytes become '?', long names are cut.
std::string printable(const std::string& name);

}  // namespace ringlab::io
