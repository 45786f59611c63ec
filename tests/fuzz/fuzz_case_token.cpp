// libFuzzer target: any text as the token of a case.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/case_token_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::fuzz::case_token_laws({begin, begin + size});
  return 0;
}
