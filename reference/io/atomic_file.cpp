#include "reference/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "reference/core/machine/machine_failure.h"
#include "reference/io/input_file.h"
#include "reference/io/tensor_file.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_write_error(const fs::path& path, int code) {
  throw_failed_call(ErrorKind::environment,
                    {.where = printable(path.string()),
                     .expected = "to write the file",
                     .hint = "Nothing was left behind"},
                    code);
}

/// Writes all and closes; 0 or an errno. The descriptor is closed in any case.
int write_and_close(int descriptor, const std::string& contents, bool sync) {
  int failure = 0;
  for (std::size_t done = 0; done < contents.size() && failure == 0;) {
    const ssize_t wrote = ::write(descriptor, contents.data() + done, contents.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (failure == 0 && sync && ::fsync(descriptor) != 0) failure = errno;
  if (::close(descriptor) != 0 && failure == 0) failure = errno;
  return failure;
}

/// Creates a file nobody else has, with the permissions an ordinary new file gets.
std::pair<fs::path, int> create_temporary(const fs::path& path) {
  static std::atomic<unsigned> counter = 0;
  for (;;) {
    // Cut, so that the name stays legal beside a file name of full length.
    const std::string name = "." + path.filename().string().substr(0, 100) + "." +
                             std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
    const fs::path temporary = path.parent_path() / name;
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return {temporary, descriptor};
    if (errno != EEXIST) throw_write_error(path, errno);
  }
}

/// Makes the rename last: without it a crash may leave the folder with the old name.
void sync_folder(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // not every file system can; the file itself is safe already
  ::close(descriptor);
}

}  // namespace

// Devices and pipes are written to directly; renaming would replace them with a file.
AtomicFile::AtomicFile(const fs::path& path, const std::string& contents) : path_(path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) throw_write_error(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) throw_write_error(path, errno);
    if (const int code = write_and_close(descriptor, contents, false))
      throw_write_error(path, code);
    return;
  }
  if (fs::exists(status)) path_ = fs::canonical(path);  // through a link, not instead of it
  const auto [temporary, descriptor] = create_temporary(path_);
  if (const int code = write_and_close(descriptor, contents, true)) {
    ::unlink(temporary.c_str());
    throw_write_error(path, code);
  }
  temporary_ = temporary;
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

void AtomicFile::commit() {
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_write_error(path_, errno);
  temporary_.clear();
  sync_folder(path_);
}

void write_file(const fs::path& path, const std::string& contents) {
  if (path != "-") return AtomicFile(path, contents).commit();
  errno = 0;
  const std::size_t written = std::fwrite(contents.data(), 1, contents.size(), stdout);
  if (written != contents.size() || std::fflush(stdout) != 0) {
    throw_write_error("standard output", errno);
  }
}

}  // namespace ringlab::io
