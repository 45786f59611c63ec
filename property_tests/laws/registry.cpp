// All laws, and finding one by its id or name.
#include <algorithm>
#include <iterator>

#include "property_tests/laws/groups.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

std::vector<Law> concatenated() {
  std::vector<Law> laws;
  for (auto group : {reference_laws, probe_laws, value_laws, score_laws, weight_laws, key_laws,
                     added_key_laws, row_laws, structure_laws, distribution_laws, backward_laws,
                     many_row_laws, infinite_value_laws}) {
    std::vector<Law> more = group();
    std::move(more.begin(), more.end(), std::back_inserter(laws));
  }
  return laws;
}

}  // namespace

const std::vector<Law>& all_laws() {
  static const std::vector<Law> laws = concatenated();
  return laws;
}

const std::vector<Law>& laws_about_others() {
  static const std::vector<Law> laws = foreign_laws();
  return laws;
}

const Law& find_law(const std::string& id) {
  std::string known;
  for (const auto* laws : {&all_laws(), &laws_about_others()}) {
    for (const Law& law : *laws) {
      if (law.id == id || law.name == id) return law;
      known += (known.empty() ? "" : ", ") + law.id;
    }
  }
  throw_usage_error(
      {.where = "law", .expected = "one of " + known, .actual = "\"" + id + "\"", .hint = ""});
}

}  // namespace ringlab::verify
