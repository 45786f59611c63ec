// libFuzzer target: any lines as the words of a command line.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/command_line_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::fuzz::command_line_laws({begin, begin + size});
  return 0;
}
