#include "cli/line/stuck.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ringlab::cli {

void leave_stuck(const DeviceStuck& error) {
  const char* const over_a_bar = ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";
  fmt::print(stderr, "{}ringlab: {}\n", over_a_bar, error.what());
  std::fflush(nullptr);
  std::_Exit(error.exit_code());
}

}  // namespace ringlab::cli
