#include "property_tests/plugins/library_list.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>

#include "property_tests/plugins/child_process.h"
#include "property_tests/plugins/system_calls.h"
#include "reference/core/machine/folder.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::plugins {
namespace {

constexpr unsigned kMostSeconds = 30;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

/// The dynamic linker that loaded this program; "" where it was linked statically.
std::string dynamic_linker() {
  const unsigned long base = getauxval(AT_BASE);
  Dl_info about{};
  const auto* address = reinterpret_cast<const void*>(base);  // NOLINT(performance-no-int-to-ptr)
  return base != 0 && dladdr(address, &about) != 0 ? about.dli_fname : "";
}

/// Lists the libraries in a process that can read and print, but nothing else: the linker maps
/// a file that nobody has checked.
[[noreturn]] void list(const std::string& linker, const std::string& path, int output) try {
  dup2(output, STDOUT_FILENO);
  alarm(kMostSeconds);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  enter_domain({.readable = {"/"}});
  refuse_system_calls({.signals = true, .network = true, .metadata = true});
  execl(linker.c_str(), linker.c_str(), "--list", path.c_str(), nullptr);
  _exit(1);
} catch (const std::exception&) {
  _exit(1);
}

std::string printed_by_linker(const std::string& path) {
  const std::string linker = dynamic_linker();
  int ends[2] = {-1, -1};
  if (linker.empty()) return "";
  if (pipe(ends) != 0) throw_if_of_machine(errno, "a pipe");
  const File printed(ends[0]);
  File printing(ends[1]);
  const pid_t lister = fork();
  if (lister == 0) list(linker, path, printing.get());
  if (lister < 0) throw_if_of_machine(errno, "a process");
  printing = File();  // the end of the text is seen once the lister has closed its copy
  std::string text;
  char some[4096];
  for (ssize_t got = 0;
       text.size() < kMostBytes && (got = read(printed.get(), some, sizeof(some))) > 0;) {
    text.append(some, static_cast<std::size_t>(got));
  }
  if (lister > 0) waitpid(lister, nullptr, 0);
  return text;
}

bool is_library(const std::string& path) {
  char magic[4] = {};
  const File file = opened(path, O_RDONLY | O_NONBLOCK);
  return read(file.get(), magic, sizeof(magic)) == std::ssize(magic) &&
         std::memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

}  // namespace

std::vector<std::string> libraries_of(const std::string& path) {
  std::vector<std::string> found{path};
  std::istringstream words(printed_by_linker(path));  // "libm.so.6 => /lib/libm.so.6 (0x…)"
  for (std::string word; words >> word;) {
    if (word.starts_with('/') && is_library(word)) found.push_back(word);
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& name : names_in(folder)) {
    const bool is_named_so = name.find(".so") != std::string::npos;
    if (is_named_so && is_library(folder + name)) found.push_back(folder + name);  // also by a link
  }
  return found;
}

}  // namespace ringlab::plugins
