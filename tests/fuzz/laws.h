// What the fuzzers and the replay of their corpus share.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::fuzz {

using Bytes = std::vector<std::byte>;

/// Stops the process: libFuzzer then keeps the input, and a test fails.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline Bytes bytes_of_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline std::string text_of_bytes(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Calls `parse`; false when it rejects with an error that is `allowed`. Any other passes on.
template <class Parse, class Allowed>
bool accepts(Parse&& parse, Allowed&& allowed) {
  try {
    parse();
    return true;
  } catch (const Error& error) {
    require(allowed(error.kind()));
    return false;
  }
}

/// The same, with errors of one kind.
template <class Parse>
bool accepts(ErrorKind kind, Parse&& parse) {
  return accepts(parse, [kind](ErrorKind found) { return found == kind; });
}

}  // namespace ringlab::fuzz
