// Options that a subject honours, and the first obstacle that a problem has for it.
#include <fmt/format.h>

#include <algorithm>

#include "property_tests/case.h"
#include "property_tests/subject.h"

namespace ringlab::verify {
namespace {

struct Obstacle {
  bool stands;
  const char* text;
};

std::string first_of(std::initializer_list<Obstacle> obstacles) {
  for (const Obstacle& one : obstacles) {
    if (one.stands) return one.text;
  }
  return "";
}

std::string mask_obstacle(const Capabilities& can, const Mask& mask) {
  if (!can.bit_masks && mask.has_bits()) return "takes no mask of bits";
  std::size_t first = can.masks.kinds.size();
  for (const MaskTerm& term : mask.terms()) {
    if (!can.masks.takes(term)) first = std::min(first, term.index());
  }
  for (const MaskTerm& term : mask.terms()) {
    if (term.index() == first) return fmt::format("takes no {} mask", mask_word(term));
  }
  const bool intersects = mask.terms().size() > 1;
  return intersects && !can.masks.intersections ? "takes no intersection of masks" : "";
}

std::string modifier_obstacle(const ModifierAbilities& can, const Modifiers& modifiers) {
  if (modifiers.any() && !can.any()) return "knows no score modifiers";
  for (const ModifierKind kind : kModifierKinds) {
    if (modifiers.has(kind) && !can.knows(kind)) {
      return fmt::format("knows no {}", modifier_title(kind));
    }
  }
  return "";
}

std::string shape_obstacle(const Capabilities& can, const Shape& s) {
  const auto fits = [&](std::int64_t channels) {
    return channels <= can.max_head_dim && channels % can.head_dim_multiple == 0;
  };
  return first_of({
      {!can.grouped_heads && s.q_heads != s.kv_heads, "takes no grouped heads"},
      {!can.rectangular && s.q_tokens != s.kv_tokens, "takes as many queries as keys only"},
      {!can.other_v_dim && s.v_dim != s.head_dim, "takes values as wide as keys only"},
      {!can.no_tokens && (s.batch == 0 || s.q_tokens == 0 || s.kv_tokens == 0),
       "takes no empty tensors"},
      {!fits(s.head_dim) || !fits(s.v_dim), "takes other head dimensions only"},
  });
}

bool is_modifier(Feature feature) {
  return feature == Feature::softcap || feature == Feature::alibi || feature == Feature::sinks ||
         feature == Feature::dropout;
}

/// The words for a subject that honours the feature: "has gradients".
std::string_view deed(Feature feature) {
  switch (feature) {
    case Feature::gradients:
      return "has gradients";
    case Feature::schedules:
    case Feature::checksums:
      return "executes schedules";
    case Feature::wires:
      return "compresses what it sends";
    case Feature::slots:
      return "has slots";
    case Feature::messages:
      return "sends messages";
    case Feature::threads:
      return "shares out its work";
    case Feature::tiles:
      return "cuts its work into tiles";
    case Feature::traces:
      return "records events";
    case Feature::softcap:
    case Feature::alibi:
    case Feature::sinks:
    case Feature::dropout:
      return "knows this modifier";
    case Feature::graphs:
    case Feature::free_multiprocessors:
    case Feature::gradient_order:
      return "takes it on devices: the subject optimized";
    case Feature::none:
      return "runs";
  }
  return "";
}

}  // namespace

bool honours(const Capabilities& can, Feature feature) {
  switch (feature) {
    case Feature::none:
      return true;
    case Feature::gradients:
      return can.backward;
    case Feature::schedules:
      return can.schedules || schedule_traits(can.schedule).has_nodes;
    case Feature::wires:
      return can.schedules;
    case Feature::checksums:
      return can.schedules && can.messages;
    case Feature::slots:
      return can.schedules || can.prefetches;
    case Feature::messages:
      return can.messages;
    case Feature::threads:
      return can.threads;
    case Feature::tiles:
      return can.tiles;
    case Feature::traces:
      return can.traces;
    case Feature::softcap:
      return can.modifiers.knows(ModifierKind::softcap);
    case Feature::alibi:
      return can.modifiers.knows(ModifierKind::alibi);
    case Feature::sinks:
      return can.modifiers.knows(ModifierKind::sinks);
    case Feature::dropout:
      return can.modifiers.knows(ModifierKind::dropout);
    case Feature::graphs:
    case Feature::free_multiprocessors:
      return can.graphs;
    case Feature::gradient_order:
      return can.gradient_order;
  }
  return false;
}

Capabilities Subject::can_at(const Place& place) const {
  Capabilities abilities = can_on(place.device);
  if (place.transport == TransportKind::nccl) abilities.traces = false;
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
  const bool is_for_cpu =
      place.device == DeviceKind::cuda && subject.can.cpu && honours(subject.can, option.needs);
  if (is_modifier(option.needs) && !can.modifiers.any()) {
    return is_for_cpu ? "no score modifiers with --device cuda" : "a subject that modifies scores";
  }
  return is_for_cpu ? "to be left out with --device cuda"
                    : fmt::format("a subject that {}", deed(option.needs));
}

std::string obstacle(const Capabilities& can, const Problem& problem) {
  const auto& dtypes = can.dtypes;
  const bool known = std::find(dtypes.begin(), dtypes.end(), problem.dtype) != dtypes.end();
  if (!dtypes.empty() && !known) {
    return fmt::format("does not compute in {}", dtype_info(problem.dtype).name);
  }
  for (const std::string& found :
       {modifier_obstacle(can.modifiers, problem.modifiers), shape_obstacle(can, problem.shape),
        mask_obstacle(can, problem.mask)}) {
    if (!found.empty()) return found;
  }
  if (!can.any_scale && problem.scale != default_scale(problem.shape.head_dim)) {
    return "takes no scale but 1/sqrt(head_dim)";
  }
  if (!can.empty_rows && has_an_empty_row(problem)) {
    return "promises nothing for queries that see no key";
  }
  return "";
}

}  // namespace ringlab::verify
