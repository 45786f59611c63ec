// Output files that are complete or absent, several of them together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ringlab::io {

/// Files under temporary names in the folders of their own ones, which they get together, by
/// commit(); without it the destructor removes them, and the folders that were made for them. A
/// link is followed; what replaces a file gets its permissions and, where that is allowed, its
/// owner. Environment error, and nothing is left, when a place cannot be written or a disk is full.
/// Used by one thread.
class AtomicFiles {
 public:
  AtomicFiles();
  ~AtomicFiles();
  AtomicFiles(const AtomicFiles&) = delete;
  AtomicFiles& operator=(const AtomicFiles&) = delete;

  /// Written and synced. Where `path` exists and is no regular file (a device, a pipe) it is written
  /// to at once, since renaming would replace it; so is "-", standard output.
  void write(const std::filesystem::path& path, const std::string& contents);
  /// Notes that this folder may be made, by this process or another one of the same job: what is
  /// missing of it now goes again without a commit, once it is empty.
  void expect_folder(const std::filesystem::path& folder);
  /// Makes a folder, and those above it that are missing; a link to one that is missing is followed.
  void make_folder(const std::filesystem::path& folder);
  /// Reserves a temporary name that follows from `path` and `mark` alone, for several processes that
  /// write one file; opens it, with this size. Returns that name.
  std::filesystem::path share(const std::filesystem::path& path, const std::string& mark,
                              std::int64_t bytes);

  /// Gives all files their names; when one cannot have it, the others give theirs back.
  void commit();
  /// Absolute names of files that are not committed: the temporary one and their own.
  struct Names {
    std::string temporary, own;
  };
  std::vector<Names> names() const;
  /// Leaves shared files to the process that commits them.
  void leave_to_others();

 private:
  friend void discard_uncommitted_files();
  struct File {
    std::filesystem::path path, temporary;
    std::filesystem::path old = {};  ///< another name for what it replaces, from commit() on
    bool named = false, replaces = false;
  };

  int open_temporary(File file, int flags);
  static int give_name(File& file);
  static bool take_back(const File& file);
  [[noreturn]] void fail(const std::filesystem::path& path, int failure);
  void remove() const;
  void discard();

  std::vector<File> files_;
  std::vector<std::filesystem::path> folders_;  ///< missing before, those above first
};

/// Removes all that is not committed in this process, for whoever ends it by std::_Exit or by a
/// signal, from any thread and from handlers of signals: no further file is made or gets its name.
void discard_uncommitted_files();

}  // namespace ringlab::io
