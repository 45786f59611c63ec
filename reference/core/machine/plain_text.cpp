#include "reference/core/machine/plain_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string_view>

namespace ringlab {
namespace {

constexpr char32_t kNoUtf8 = 0xffffffff;

/// A character of a text: its number in Unicode, or kNoUtf8, and the bytes it takes.
struct Character {
  char32_t number = kNoUtf8;
  std::size_t bytes = 1;
};

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

Character first_character(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes > text.size()) return {};
  char32_t number = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return {};
    number = (number << 6) | (byte_at(text, i) & 0x3fu);
  }
  return {number, bytes};
}

bool steers(char32_t number) {
  if (number == '\n' || number == '\t') return false;
  const bool control = number < 0x20 || (number >= 0x7f && number <= 0x9f);
  const bool direction =
      (number >= 0x202a && number <= 0x202e) || (number >= 0x2066 && number <= 0x2069);
  return control || direction;
}

/// The text with what `replaced` makes of the characters that steer.
template <class Replaced>
std::string without_steering(std::string_view rest, const Replaced& replaced) {
  std::string plain;
  plain.reserve(rest.size());
  while (!rest.empty()) {
    const Character next = first_character(rest);
    const char32_t number = next.number == kNoUtf8 ? byte_at(rest, 0) : next.number;
    if (steers(number)) {
      plain += replaced(number);
    } else {
      plain += rest.substr(0, next.bytes);
    }
    rest.remove_prefix(next.bytes);
  }
  return plain;
}

}  // namespace

std::string plain_text(const std::string& text) {
  return without_steering(text, [](char32_t) { return '?'; });
}

std::string plain_line(const std::string& text) {
  std::string line = plain_text(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, '?');
  return line;
}

std::string plain_json(const std::string& json) {
  return without_steering(json, [](char32_t number) {
    char escape[7];  // no number that steers has more than four digits
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(number & 0xffff));
    return std::string(escape);
  });
}

}  // namespace ringlab
