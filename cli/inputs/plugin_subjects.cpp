#include "cli/inputs/plugin_subjects.h"

#include "property_tests/plugins/plugin_subject.h"
#include "property_tests/vendor_subject.h"

namespace ringlab::cli {

verify::Subject subject_named(const std::string& name, Arguments& arguments) {
  constexpr double kCustomary = 10, kLeast = 1e-6, kMost = 1e6;
  verify::Subject cudnn = verify::cudnn_subject();
  if (name == cudnn.name) return cudnn;
  if (!verify::names_a_plugin(name)) return verify::find_subject(name);
  const double deadline_s = arguments.given("timeout")
                                ? arguments.take_real("timeout", kCustomary, kLeast, kMost)
                                : kCustomary;
  return verify::plugin_subject(name, {.deadline_s = deadline_s});
}

std::vector<std::string> notes_on(const std::vector<verify::Subject>& subjects) {
  std::vector<std::string> notes;
  for (const verify::Subject& subject : subjects) {
    if (!subject.can.lse) notes.push_back(subject.name + " gives no lse: it is not checked");
    if (!subject.can.deterministic && subject.can.foreign) {
      notes.push_back(subject.name + " promises no bits: laws about bits are skipped");
    }
  }
  return notes;
}

}  // namespace ringlab::cli
