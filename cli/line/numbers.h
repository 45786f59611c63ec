// Numbers from the command line: the whole word is the number, and it lies in a range.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::cli {

/// Usage errors name the option, the range and what was found. No sign but '-', no spaces, no
/// suffix, no hexadecimal.
std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least,
                           std::int64_t most);
std::uint64_t parse_unsigned(const std::string& option, const std::string& text);
/// Finite; "nan", "inf" and numbers beyond the range of double are usage errors.
double parse_real(const std::string& option, const std::string& text, double least, double most);

}  // namespace ringlab::cli
