// ringlab-compiler-host SCRATCH FILE… -- PROGRAM WORD…: runs a program behind the walls of plugins. It
// reads the system's files and those in FILE…, writes to $TMPDIR, standard output and standard error
// alone, and ends when the other end of standard input, a socket, is closed. SCRATCH: a folder to write
// in, where the machine gives no memory for files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "property_tests/plugins/confinement.h"
#include "property_tests/plugins/environment.h"
#include "property_tests/plugins/protocol.h"

namespace {

using namespace ringlab::plugins;

int refused(const char* what, const char* why) {
  std::fprintf(stderr, "ringlab-compiler-host: %s: %s\n", what, why);
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  char** const end = argv + argc;
  char** const rule = std::find(argv, end, std::string_view("--"));
  if (rule - argv < 2 || end - rule < 2) {
    return refused("words", "`ringlab lab` starts this program to run a compiler in.");
  }
  try {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(STDIN_FILENO, kSocket) < 0 || dup2(nothing, STDIN_FILENO) < 0) {
      return refused("standard input", std::strerror(errno));
    }
    clear_environment();
    confine({.processes = Processes::allowed,
             .files = {.readable = {argv + 2, rule}, .scratch = argv[1]}});
    fcntl(kSocket, F_SETFD, FD_CLOEXEC);
    execvp(rule[1], rule + 1);
    return refused(rule[1], std::strerror(errno));
  } catch (const std::exception& error) {
    return refused("walls", error.what());
  }
}
