// libFuzzer target: any bytes as what a plugin's process says of itself.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/plugin_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::fuzz::plugin_laws({begin, begin + size});
  return 0;
}
