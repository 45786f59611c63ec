// Abilities of a subject where it runs, and subjects with other options.
#include "property_tests/subject.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringlab::verify {
namespace {

bool is_modifier(Feature feature) {
  return feature == Feature::softcap || feature == Feature::alibi || feature == Feature::sinks ||
         feature == Feature::dropout;
}

}  // namespace

Capabilities Subject::can_at(const Place& place) const {
  Capabilities abilities = can_on(place.device);
  if (place.transport == TransportKind::nccl) abilities.drop({Ability::traces});
  return abilities;
}

bool Subject::runs_on(TransportKind carrier) const {
  return std::ranges::find(carriers, carrier) != carriers.end();
}

std::string why_without_effect(const Subject& subject, const RunOption& option,
                               const Place& place) {
  const Capabilities can = subject.can_at(place);
  const bool is_the_carrier = place.is_job() && option.needs == Feature::messages;
  if (is_the_carrier || honours(can, option.needs)) return "";
  const bool is_for_cpu = place.device == DeviceKind::cuda && subject.can.has(Ability::cpu) &&
                          honours(subject.can, option.needs);
  if (is_modifier(option.needs) && !can.modifiers.any()) {
    return is_for_cpu ? "no score modifiers with --device cuda" : "a subject that modifies scores";
  }
  return is_for_cpu ? "to be left out with --device cuda"
                    : fmt::format("a subject that {}", deed(option.needs));
}

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
  if (subject.can.has(Ability::backward)) subject.can.drop({Ability::deterministic_gradients});
  subject.run = [run = subject.run](const AttentionInput& input, RunOptions options) {
    options.deterministic = false;
    return run(input, options);
  };
  return subject;
}

}  // namespace ringlab::verify
