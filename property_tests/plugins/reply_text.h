// Texts of a plugin's process as we may show them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringlab::plugins {

/// The text up to its zero, or to its end where the other side left the zero out. Control
/// characters, which a terminal would obey, become question marks.
template <std::size_t kSize>
std::string shown_text(const char (&field)[kSize]) {
  std::string text(field, std::find(field, field + kSize, '\0'));
  const auto is_control = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

}  // namespace ringlab::plugins
