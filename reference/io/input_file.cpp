#include "reference/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "reference/core/error.h"
#include "reference/core/machine/machine_failure.h"
#include "reference/core/machine/plain_text.h"

namespace ringlab::io {
namespace {

constexpr std::size_t kLongestName = 200;

[[noreturn]] void throw_open_error(const std::string& name, int code) {
  throw_failed_call(ErrorKind::input, {.where = name, .expected = "a readable file"}, code);
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : name_(printable(path.string())) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer that may never come.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_open_error(name_, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw_input_error(
        {.where = name_,
         .expected = "a regular file",
         .actual = known && S_ISDIR(status.st_mode) ? "a directory" : "something else"});
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

// pread() may return less than was asked for; an early end means that the file shrank meanwhile.
std::vector<std::byte> InputFile::read_at(std::int64_t offset, std::int64_t count) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(descriptor_, bytes.data() + filled, bytes.size() - filled,
                                offset + static_cast<off_t>(filled));
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw_input_error({.where = name_,
                         .expected = std::to_string(count) + " bytes",
                         .actual = "the end after " + std::to_string(filled),
                         .hint = "The file changed while it was read"});
    } else if (errno != EINTR) {
      throw_open_error(name_, errno);
    }
  }
  return bytes;
}

std::vector<std::byte> read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  const InputFile file(path);
  if (file.size() > max_bytes) {
    throw_input_error({.where = printable(path.string()),
                       .expected = "at most " + std::to_string(max_bytes) + " bytes",
                       .actual = std::to_string(file.size())});
  }
  return file.read(file.size());
}

std::string printable(const std::string& name) {
  std::string text = plain_line(name.substr(0, kLongestName));
  if (name.size() > kLongestName) text += "…";
  return text;
}

}  // namespace ringlab::io
