// Lists of things that have names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::model {

/// "h200, h100, a100".
template <class Named>
std::string names_of(const std::vector<Named>& all) {
  std::string names;
  for (const Named& one : all) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

/// The one of this name. Usage error that lists the names; `what` they are, and a hint.
template <class Named>
const Named& find_named(const std::vector<Named>& all, std::string_view name,
                        const std::string& what, const std::string& hint) {
  for (const Named& one : all) {
    if (one.name == name) return one;
  }
  throw_usage_error({.where = what,
                     .expected = "one of " + names_of(all),
                     .actual = "\"" + std::string(name) + "\"",
                     .hint = hint});
}

}  // namespace ringlab::model
