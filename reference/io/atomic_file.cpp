#include "reference/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "reference/core/machine/machine_failure.h"
#include "reference/io/input_file.h"
#include "reference/io/tensor_file.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

// Every AtomicFiles that may have files not committed; the mutex is held to make or remove one.
std::mutex registry_mutex;
std::set<const AtomicFiles*> registry;

/// Holds the registry. No signal interrupts this thread meanwhile, so that the handler of one may
/// wait for the registry: whoever has it gets on.
class Held {
 public:
  Held() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    registry_mutex.lock();
  }
  ~Held() {
    registry_mutex.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  sigset_t before_{};
};

[[noreturn]] void throw_write_error(const fs::path& path, int code,
                                    const std::string& hint = "Nothing was left behind") {
  throw_failed_call(
      ErrorKind::environment,
      {.where = printable(path.string()), .expected = "to write the file", .hint = hint}, code);
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

void write_to_standard_output(const std::string& contents) {
  errno = 0;
  const std::size_t written = std::fwrite(contents.data(), 1, contents.size(), stdout);
  if (written != contents.size() || std::fflush(stdout) != 0) {
    throw_write_error("standard output", errno);
  }
}

/// Writes to a device or a pipe; one that nobody reads is an error, no wait for a reader.
void write_to_device(const fs::path& path, const std::string& contents) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) throw_write_error(path, errno);
  ::fcntl(descriptor, F_SETFL, 0);  // a slow reader is waited for
  const int code = write_and_close(descriptor, contents, false);
  if (code != 0) throw_write_error(path, code);
}

/// The path that a link leads to, even if its file is still to be made; other paths as they are.
fs::path behind_links(const fs::path& given) {
  fs::path path = given;
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, ignored); ++links) {
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  if (fs::is_symlink(path, ignored)) throw_write_error(given, ELOOP);
  return path;
}

/// A temporary name beside `path`, cut so that it stays legal where that name has full length.
fs::path temporary_name(const fs::path& path, const std::string& mark) {
  return path.parent_path() / ("." + path.filename().string().substr(0, 100) + "." + mark + ".tmp");
}

std::optional<struct stat> regular_file(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  if (S_ISDIR(found.st_mode)) throw_write_error(path, EISDIR);
  if (!S_ISREG(found.st_mode)) return {};
  return found;
}

/// Permissions to write a file with that is to replace `path`: nobody may read it who could not.
mode_t mode_beside(const fs::path& path) {
  const auto before = regular_file(path);
  return before ? (before->st_mode & 0777) | S_IWUSR : 0666;
}

/// A file that replaces another one gets its permissions, and its owner where the system allows it.
void take_permissions(const fs::path& file, const fs::path& from) {
  const auto before = regular_file(from);
  if (!before) return;
  [[maybe_unused]] const int kept = ::chown(file.c_str(), before->st_uid, before->st_gid);
  ::chmod(file.c_str(), before->st_mode & 0777);
}

/// Makes renames last: without it a crash may leave the folder with the old names.
void sync_folder(const fs::path& folder) {
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // not every file system can; the files themselves are safe already
  ::close(descriptor);
}

bool exchange(const fs::path& one, const fs::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

AtomicFiles::AtomicFiles() {
  const Held held;
  registry.insert(this);
}

AtomicFiles::~AtomicFiles() {
  const Held held;
  registry.erase(this);
  discard();
}

/// Needs no memory and gives none back: signal handlers call it, too.
void AtomicFiles::remove() const {
  for (const File& file : files_) ::unlink(file.temporary.c_str());
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    ::rmdir(folder->c_str());  // not when somebody else has put something there
  }
}

void AtomicFiles::discard() {
  remove();
  files_.clear();
  folders_.clear();
}

/// A descriptor, or -1 with an errno. Nobody can discard the others between file and note, for which
/// memory is there first.
int AtomicFiles::open_temporary(File file, int flags) {
  const Held held;
  files_.reserve(files_.size() + 1);
  const int descriptor =
      ::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags,
             mode_beside(file.path));
  if (descriptor >= 0) files_.push_back(std::move(file));
  return descriptor;
}

void AtomicFiles::write(const fs::path& given, const std::string& contents) {
  static std::atomic<unsigned> counter = 0;
  if (given == "-") return write_to_standard_output(contents);
  std::error_code ignored;
  if (fs::exists(given, ignored) && !regular_file(given)) return write_to_device(given, contents);
  const fs::path path = behind_links(given);
  int descriptor = -1;
  do {
    const std::string mark = std::to_string(::getpid()) + "." + std::to_string(counter++);
    descriptor = open_temporary({path, temporary_name(path, mark)}, O_EXCL);
  } while (descriptor < 0 && errno == EEXIST);
  const int code = descriptor < 0 ? errno : write_and_close(descriptor, contents, true);
  if (code != 0) throw_write_error(given, code);
}

void AtomicFiles::expect_folder(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path at = behind_links(folder); !at.empty() && !fs::exists(at, ignored);
       at = at.parent_path()) {
    missing.push_back(at);
  }
  const Held held;
  folders_.insert(folders_.end(), missing.rbegin(), missing.rend());
}

void AtomicFiles::make_folder(const fs::path& given) {
  const fs::path folder = behind_links(given);
  expect_folder(folder);
  std::error_code error;
  const Held held;
  fs::create_directories(folder, error);
  if (!error && fs::is_directory(folder, error)) return;
  throw_environment_error({.where = printable(folder.string()),
                           .expected = "to make a directory",
                           .actual = error ? error.message() : std::string("a file of that name")});
}

fs::path AtomicFiles::share(const fs::path& given, const std::string& mark, std::int64_t bytes) {
  const fs::path path = behind_links(given);
  std::error_code ignored;
  if (fs::exists(path, ignored) && !regular_file(path)) {
    throw_environment_error({.where = printable(given.string()),
                             .expected = "a regular file, or none",
                             .actual = "something else"});
  }
  fs::path temporary = temporary_name(path, mark);
  const int descriptor = open_temporary({path, temporary}, 0);
  if (descriptor < 0) throw_write_error(given, errno);
  const int failure = ::ftruncate(descriptor, bytes) == 0 ? 0 : errno;
  ::close(descriptor);
  if (failure != 0) throw_write_error(given, failure);
  return temporary;
}

/// 0 or an errno. Links stand in for exchange where a file system lacks it; where it lacks both, the
/// old file is lost if a later one cannot have its name.
int AtomicFiles::give_name(File& file) {
  take_permissions(file.temporary, file.path);
  if (exchange(file.temporary, file.path)) {
    std::swap(file.temporary, file.old);
    file.replaces = file.named = true;
    return 0;
  }
  file.replaces = ::link(file.path.c_str(), file.old.c_str()) == 0;
  file.named = ::rename(file.temporary.c_str(), file.path.c_str()) == 0;
  return file.named ? 0 : errno;
}

/// False where the system refuses that, too: the old file keeps its other name.
bool AtomicFiles::take_back(const File& file) {
  if (file.named && file.replaces) return ::rename(file.old.c_str(), file.path.c_str()) == 0;
  const fs::path& made = file.named ? file.path : file.old;
  if (file.named || file.replaces) ::unlink(made.c_str());
  return true;
}

void AtomicFiles::fail(const fs::path& path, int failure) {
  std::string left;
  for (const File& file : files_) {
    if (!take_back(file)) left += (left.empty() ? "" : ", ") + printable(file.old.string());
  }
  const std::string given = path.string();  // discard() ends what it may be part of
  discard();
  if (left.empty()) throw_write_error(given, failure);
  throw_write_error(given, failure, "Files that were there before are now " + left);
}

void AtomicFiles::commit() {
  const Held held;
  std::set<fs::path> folders;
  for (File& file : files_) {
    folders.insert(file.path.parent_path());
    file.old = file.temporary;
    file.old += ".old";
  }
  for (File& file : files_) {
    if (const int failure = give_name(file); failure != 0) fail(file.path, failure);
  }
  for (const File& file : files_) {
    if (file.replaces) ::unlink(file.old.c_str());
  }
  for (const fs::path& folder : folders) sync_folder(folder);
  files_.clear();
  folders_.clear();
}

std::vector<AtomicFiles::Names> AtomicFiles::names() const {
  std::vector<Names> all;
  for (const File& file : files_) {
    all.push_back({fs::absolute(file.temporary).string(), fs::absolute(file.path).string()});
  }
  return all;
}

void AtomicFiles::leave_to_others() {
  const Held held;
  files_.clear();
  folders_.clear();
}

void discard_uncommitted_files() {
  registry_mutex.lock();  // for good
  for (const AtomicFiles* files : registry) files->remove();
}

void write_file(const fs::path& path, const std::string& contents) {
  AtomicFiles files;
  files.write(path, contents);
  files.commit();
}

}  // namespace ringlab::io
