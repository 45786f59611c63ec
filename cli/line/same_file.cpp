#include "cli/line/same_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace ringlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as many as Linux follows

/// A file that is there has no name here; one that is not has the inode of its folder.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string name = {};
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// The path behind links that lead to no file.
fs::path followed(fs::path path) {
  std::error_code failed;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, failed); ++links) {
    const fs::path target = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / target;
  }
  return path;
}

Identity identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) return {found.st_dev, found.st_ino};
  const fs::path whole =
      followed(path);  // as it is: ".." behind a link leads elsewhere than in text
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  if (::stat(folder.c_str(), &found) != 0) return {.name = fs::absolute(whole).string()};
  return {found.st_dev, found.st_ino, whole.filename().string()};
}

}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  return identity_of(a) == identity_of(b);
}

bool is_there(const std::string& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

}  // namespace ringlab::cli
