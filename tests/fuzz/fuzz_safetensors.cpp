// libFuzzer target: any bytes as a .safetensors file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tests/fuzz/parser_laws.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::io::safetensors_laws({begin, begin + size});
  return 0;
}

// Nearly every random edit breaks the header length; most inputs get a fitting one, so that they
// reach the parser behind it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const std::span bytes(data, size);
  const auto last_brace = std::find(bytes.rbegin(), bytes.rend(), std::uint8_t{'}'});
  const auto end = static_cast<std::uint64_t>(bytes.rend() - last_brace);
  if (seed % 8 != 0 && end > 8) {
    const std::uint64_t length = end - 8;
    std::memcpy(data, &length, 8);
  }
  return size;
}
