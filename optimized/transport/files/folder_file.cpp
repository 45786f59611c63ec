#include "optimized/transport/files/folder_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "reference/core/machine/machine_failure.h"

namespace ringlab {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found) {
  throw_environment_error({.where = path.string(),
                           .expected = "a file of a rank of this job",
                           .actual = found,
                           .hint = "Use a folder that nobody else can write to"});
}

/// 0, or an errno.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  // A call may write a part, and a signal may interrupt it; neither is an error.
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return 0;
}

}  // namespace

void write_folder_file(const std::filesystem::path& part, const std::filesystem::path& file,
                       std::span<const std::byte> bytes, const std::string& who) {
  const int descriptor =
      // O_EXCL and O_NOFOLLOW: what lies there already, or is a link to
      // elsewhere, is not written to.
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int failure = descriptor < 0 ? errno : write_all(descriptor, bytes);
  // Network file systems report full disks at the close.
  if (descriptor >= 0 && ::close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && ::rename(part.c_str(), file.c_str()) != 0) failure = errno;
  if (failure == 0) return;
  if (descriptor >= 0) ::unlink(part.c_str());  // only what was made here
  throw_failed_call(ErrorKind::environment,
                    {.where = file.string(), .expected = "a folder that " + who + " can write to"},
                    failure);
}

std::optional<FolderFile> FolderFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer that may never come.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return {};
  if (descriptor < 0 && errno == ELOOP) refuse(path, "a link");
  if (descriptor < 0) {
    throw_failed_call(ErrorKind::environment,
                      {.where = path.string(), .expected = "a file that can be read"}, errno);
  }
  FolderFile file(path, descriptor);
  struct stat status {};
  // Asked of the descriptor, not of the name, which may be another file by now.
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) refuse(path, "no plain file");
  file.size_ = status.st_size;
  return file;
}

FolderFile::FolderFile(FolderFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

FolderFile::~FolderFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FolderFile::read(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::read(descriptor_, bytes.data(), bytes.size());
    // Shorter than it was: somebody else writes there, as complete files are renamed into place.
    if (got == 0) refuse(path_, "one that ends too early");
    if (got < 0 && errno != EINTR) {
      throw_failed_call(ErrorKind::environment,
                        {.where = path_.string(), .expected = "a file that can be read"}, errno);
    }
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string FolderFile::text(std::int64_t most) const {
  // Against memory that a file of somebody else's making would take.
  if (size_ > most) refuse(path_, "one of " + std::to_string(size_) + " bytes");
  std::string all(static_cast<std::size_t>(size_), '\0');
  read(std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace ringlab
