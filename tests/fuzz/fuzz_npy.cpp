// libFuzzer target: any bytes as a .npy file.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parser_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::io::npy_laws({begin, begin + size});
  return 0;
}
