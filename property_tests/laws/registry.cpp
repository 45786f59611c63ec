// All laws, and finding one by its id or name.
#include <algorithm>
#include <array>
#include <iterator>

#include "property_tests/laws/groups.h"
#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab::verify {
namespace {

struct LawGroup {
  const char* topic;
  std::vector<Law> (*laws)();
};
constexpr std::array kGroups = {
    LawGroup{"values", reference_laws},
    LawGroup{"exact probes", probe_laws},
    LawGroup{"values", value_laws},
    LawGroup{"scores", score_laws},
    LawGroup{"weights", weight_laws},
    LawGroup{"keys", key_laws},
    LawGroup{"keys", added_key_laws},
    LawGroup{"rows", row_laws},
    LawGroup{"masks and shapes", structure_laws},
    LawGroup{"distribution", distribution_laws},
    LawGroup{"gradients", backward_laws},
    LawGroup{"sizes", many_row_laws},
    LawGroup{"sizes", as_used_laws},
    LawGroup{"sizes", every_row_laws},
    LawGroup{"sizes", far_position_laws},
    LawGroup{"sizes", far_size_laws},
    LawGroup{"values", infinite_value_laws},
    LawGroup{"values", extreme_laws},
};

std::vector<Law> laws_of(const LawGroup& group) {
  std::vector<Law> laws = group.laws();
  for (Law& law : laws) law.topic = group.topic;
  return laws;
}

std::vector<Law> concatenated() {
  std::vector<Law> laws;
  for (const LawGroup& group : kGroups) {
    std::vector<Law> more = laws_of(group);
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
  static const std::vector<Law> laws = laws_of({"interface", foreign_laws});
  return laws;
}

const Law& find_law(const std::string& id) {
  std::string known;
  std::vector<std::string> words;  // longer ones: short ids are all near to one another
  for (const auto* laws : {&all_laws(), &laws_about_others()}) {
    for (const Law& law : *laws) {
      if (law.id == id || law.name == id) return law;
      known += (known.empty() ? "" : ", ") + law.id;
      for (const std::string& word : {law.id, law.name}) {
        if (word.size() > 4) words.push_back(word);
      }
    }
  }
  throw_usage_error({.where = "law",
                     .expected = "one of " + known,
                     .actual = "\"" + id + "\"",
                     .hint = did_you_mean(id, words)});
}

}  // namespace ringlab::verify
