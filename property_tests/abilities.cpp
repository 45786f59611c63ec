// What of a problem is too much for a subject.
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

}  // namespace

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
