// Words of the command line: numbers and lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ringlab::cli {

/// A whole number: no sign but '-', no spaces, no suffix, no hexadecimal. Usage errors name the
/// option, the range and the text.
std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least,
                           std::int64_t most);
std::uint64_t parse_unsigned(const std::string& option, const std::string& text);
/// A finite number; "nan", "inf" and numbers beyond the range of double are usage errors.
double parse_real(const std::string& option, const std::string& text, double least, double most);

/// The words between the commas, empty ones too.
inline std::vector<std::string> words_between_commas(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace ringlab::cli
