// The stages as subjects.
#include <algorithm>

#include "property_tests/engine_subject.h"
#include "property_tests/reference_subject.h"
#include "property_tests/subject.h"
#include "property_tests/vendor_subject.h"
#include "reference/core/error.h"
#include "reference/core/options/near_word.h"
#include "stages/common/stage.h"

namespace ringlab::verify {
namespace {

Subject subject_of(const stages::Stage& stage) {
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.ring_traffic = stage.ring_traffic;
  can.schedule = stage.schedule;
  can.queries_travel = stage.queries_travel;
  can.backward = stage.backward;
  can.prefetches = stage.prefetches;
  can.skips_empty_blocks = stage.skips_empty_blocks;
  can.cuda = !stage.cpu_only;
  can.traces = true;
  Subject subject{.name = stage.name,
                  .title = stage.id + " " + stage.name + ": " + stage.idea,
                  .can = can,
                  .run = stage.run,
                  .profile = stage.profile};
  subject.costs = stage.costs;
  can.traces = false;
  if (stage.tensor_cores) {
    can.powers_next_to_0_are_1 = can.same_bits_beside_nan = false;
    can.messages = can.tiles = false;  // copies, and kernels with tiles of their own
  }
  subject.can_on_devices = std::move(can);
  return subject;
}

bool names(const stages::Stage& stage, const std::string& name) {
  return name == stage.name || name == stage.id || name == stage.id + "_" + stage.name;
}

}  // namespace

Subject on_device(Subject subject, DeviceKind device) {
  subject.can = Capabilities(subject.can_on(device));
  if (device != DeviceKind::cpu) subject.costs = {};  // its ranks send and hold other things there
  subject.run = [run = subject.run, device](const AttentionInput& input, RunOptions options) {
    options.device = device;
    return run(input, options);
  };
  subject.profile = [profile = subject.profile, device](const Problem& problem,
                                                        RunOptions options) {
    options.device = device;
    return profile(problem, options);
  };
  return subject;
}

Subject with_gradients_in_any_order(Subject subject) {
  if (subject.can.backward) subject.can.deterministic_gradients = false;
  subject.run = [run = subject.run](const AttentionInput& input, RunOptions options) {
    options.deterministic = false;
    return run(input, options);
  };
  return subject;
}

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
