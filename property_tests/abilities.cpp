// Options that a subject honours, and the first obstacle that a problem has for it.
#include "property_tests/abilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "property_tests/case.h"

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
  if (!can.has(Ability::bit_masks) && mask.has_bits()) return "takes no mask of bits";
  std::size_t first = can.masks.kinds.size();
  for (const MaskTerm& term : mask.terms()) {
    if (!can.masks.takes(term)) first = std::min(first, term.index());
  }
  for (const MaskTerm& term : mask.terms()) {
    if (term.index() == first) return fmt::format("takes no {} mask", mask_word(term));
  }
  if (mask.terms().empty() && !can.masks.full) return "takes no call without a mask";
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
      {!can.has(Ability::grouped_heads) && s.q_heads != s.kv_heads, "takes no grouped heads"},
      {!can.has(Ability::rectangular) && s.q_tokens != s.kv_tokens,
       "takes as many queries as keys only"},
      {!can.has(Ability::other_v_dim) && s.v_dim != s.head_dim,
       "takes values as wide as keys only"},
      {!can.has(Ability::no_tokens) && (s.batch == 0 || s.q_tokens == 0 || s.kv_tokens == 0),
       "takes no empty tensors"},
      {s.q_tokens % can.token_multiple != 0 || s.kv_tokens % can.token_multiple != 0,
       "takes other numbers of tokens only"},
      {!fits(s.head_dim) || !fits(s.v_dim), "takes other head dimensions only"},
  });
}

// In the order of their enumerators.
constexpr const char* kWords =
    "many_ranks counts_traffic masked_may_be_nan cpu messages tiles bit_masks deterministic "
    "deterministic_gradients sums_keys_in_order same_bits_per_row divides_last "
    "powers_next_to_0_are_1 same_bits_beside_nan lse grouped_heads rectangular other_v_dim "
    "no_tokens empty_rows any_scale strided_inputs backward schedules queries_travel ring_traffic "
    "prefetches skips_empty_blocks threads traces cuda graphs gradient_order foreign few_shapes";

struct Honour {
  bool given;
  std::string_view deed;
};
Honour honour(const Capabilities& can, Feature feature) {
  using enum Ability;
  constexpr std::string_view kKnows = "knows this modifier";
  constexpr std::string_view kOnDevices = "takes it on devices: the subject optimized";
  switch (feature) {
    case Feature::none:
      return {true, "runs"};
    case Feature::gradients:
      return {can.has(backward), "has gradients"};
    case Feature::schedules:
      return {can.has(schedules) || schedule_traits(can.schedule).has_nodes, "executes schedules"};
    case Feature::wires:
      return {can.has(schedules), "compresses what it sends"};
    case Feature::checksums:
      return {can.has(schedules) && can.has(messages), "executes schedules"};
    case Feature::slots:
      return {can.has(schedules) || can.has(prefetches), "has slots"};
    case Feature::messages:
      return {can.has(messages), "sends messages"};
    case Feature::threads:
      return {can.has(threads), "shares out its work"};
    case Feature::tiles:
      return {can.has(tiles), "cuts its work into tiles"};
    case Feature::traces:
      return {can.has(traces), "records events"};
    case Feature::softcap:
      return {can.modifiers.knows(ModifierKind::softcap), kKnows};
    case Feature::alibi:
      return {can.modifiers.knows(ModifierKind::alibi), kKnows};
    case Feature::sinks:
      return {can.modifiers.knows(ModifierKind::sinks), kKnows};
    case Feature::dropout:
      return {can.modifiers.knows(ModifierKind::dropout), kKnows};
    case Feature::graphs:
    case Feature::free_multiprocessors:
      return {can.has(graphs), kOnDevices};
    case Feature::gradient_order:
      return {can.has(gradient_order), kOnDevices};
  }
  return {};
}

}  // namespace

std::string ability_word(Ability ability) {
  std::istringstream words(kWords);
  std::string word;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(ability); ++i) words >> word;
  return word;
}

bool honours(const Capabilities& can, Feature feature) { return honour(can, feature).given; }
std::string_view deed(Feature feature) { return honour({}, feature).deed; }

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
  if (!can.has(Ability::any_scale) && problem.scale != default_scale(problem.shape.head_dim)) {
    return "takes no scale but 1/sqrt(head_dim)";
  }
  if (!can.nonpositive_scale && !(problem.scale > 0)) return "takes no scale of 0 or below";
  if (!can.has(Ability::empty_rows) && has_an_empty_row(problem)) {
    return "promises nothing for queries that see no key";
  }
  return "";
}

}  // namespace ringlab::verify
