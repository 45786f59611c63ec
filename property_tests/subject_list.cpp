// The subjects by their names, and the stages among them.
#include "property_tests/subject_list.h"

#include <utility>

#include "reference/core/error.h"
#include "reference/core/options/near_word.h"
#include "stages/common/stage.h"

namespace ringlab::verify {
namespace {

Subject subject_of(const stages::Stage& stage) {
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.schedule = stage.schedule;
  can.set(Ability::ring_traffic, stage.ring_traffic);
  can.set(Ability::queries_travel, stage.queries_travel);
  can.set(Ability::backward, stage.backward);
  can.set(Ability::prefetches, stage.prefetches);
  can.set(Ability::skips_empty_blocks, stage.skips_empty_blocks);
  can.set(Ability::cuda, !stage.cpu_only);
  DeviceRuns on_devices{.can = can};
  if (stage.tensor_cores) {
    on_devices.can.drop({Ability::powers_next_to_0_are_1, Ability::same_bits_beside_nan});
    // Copies in place of messages, and kernels with tiles of their own.
    on_devices.can.drop({Ability::messages, Ability::tiles});
  }
  can.add({Ability::traces});
  return {.name = stage.name,
          .title = stage.id + " " + stage.name + ": " + stage.idea,
          .can = std::move(can),
          .run = stage.run,
          .profile = stage.profile,
          .on_devices = std::move(on_devices),
          .costs = stage.costs};
}

bool names(const stages::Stage& stage, const std::string& name) {
  return name == stage.name || name == stage.id || name == stage.id + "_" + stage.name;
}

}  // namespace

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const stages::Stage& stage : stages::all_stages()) subjects.push_back(subject_of(stage));
  subjects.push_back(engine_subject());
  return subjects;
}

std::vector<Subject> vendor_subjects() { return {cudnn_subject()}; }

Subject find_subject(const std::string& name) {
  std::vector<std::string> known;
  for (const stages::Stage& stage : stages::all_stages()) {
    if (names(stage, name)) return subject_of(stage);
    known.push_back(stage.name);
  }
  Subject engine = engine_subject();
  if (name == engine.name) return engine;
  for (Subject& vendor : vendor_subjects()) {
    if (name == vendor.name) return std::move(vendor);
  }
  known.push_back(engine.name);
  Subject reference = reference_subject();
  if (name == reference.name) return reference;
  known.push_back(reference.name);
  const std::string meant = did_you_mean(name, known);
  std::string words;
  for (const std::string& one : known) words += (words.empty() ? "" : ", ") + one;
  throw_usage_error({.where = "subject",
                     .expected = "one of " + words,
                     .actual = "\"" + name + "\"",
                     .hint = meant.empty() ? "ringlab list shows them" : meant});
}

}  // namespace ringlab::verify
