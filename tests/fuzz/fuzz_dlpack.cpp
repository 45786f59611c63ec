// libFuzzer target: any bytes as DLPack's description of an array.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/dlpack_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::fuzz::dlpack_laws({begin, begin + size});
  return 0;
}
