// JSON from outside: looked through before anything is built of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringlab::io {

/// Limits of a kind of JSON document.
struct JsonLimits {
  std::string_view what;  ///< "header", for messages
  std::int64_t depth = 1;
  std::int64_t keys = 1;    ///< of one object
  std::int64_t values = 1;  ///< in all: numbers, texts, lists, objects
};

/// Input error unless `text` is one JSON value in UTF-8 within the limits, without a NUL byte and
/// without an object that has a key twice. Needs memory for the keys of the open objects only, and
/// time n log n. `where` is for messages.
void check_json(std::string_view text, const JsonLimits& limits, const std::string& where);

}  // namespace ringlab::io
