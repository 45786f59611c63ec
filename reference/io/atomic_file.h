// Output files that are complete or absent.
#pragma once

#include <filesystem>
#include <string>

namespace ringlab::io {

/// Written and synced under a temporary name in the folder of `path`; commit() renames it, and
/// without a commit the destructor removes it. Where `path` exists and is no regular file (a
/// device, a pipe) it is written to directly, since renaming would replace it.
/// Environment error when the place cannot be written or the disk is full.
class AtomicFile {
 public:
  AtomicFile(const std::filesystem::path& path, const std::string& contents);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< empty once committed
};

}  // namespace ringlab::io
