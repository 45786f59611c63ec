#include "reference/core/checks.h"

#include <string>

#include "reference/core/error.h"

namespace ringlab {

std::string text(const Extents& e) {
  return "(" + std::to_string(e.batch) + ", " + std::to_string(e.heads) + ", " +
         std::to_string(e.tokens) + ", " + std::to_string(e.channels) + ")";
}

void check_range(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw_usage_error({.where = what,
                     .expected = std::to_string(least) + " to " + std::to_string(most),
                     .actual = std::to_string(value)});
}

void check_extents(const std::string& name, const Extents& actual, const Extents& expected) {
  if (actual == expected) return;
  throw_input_error({.where = name, .expected = text(expected), .actual = text(actual)});
}

}  // namespace ringlab
