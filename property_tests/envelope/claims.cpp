// Claims of a subject that no call has tried.
#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "property_tests/envelope/envelope.h"

namespace ringlab::verify {
namespace {

/// Collects claims about one pass that no call of it has tried.
class Claims {
 public:
  Claims(const PassEnvelope& tried, std::string prefix, std::vector<std::string>& missing)
      : tried_(tried), prefix_(std::move(prefix)), missing_(missing) {}

  void require(bool was_tried, const std::string& what) {
    if (!was_tried) missing_.push_back(prefix_ + what);
  }
  void require(const std::string& kind, const std::string& word, const std::string& what) {
    require(tried_.has(kind, word), what);
  }
  /// Requires a word alone or among others: "causal" of "causal+window".
  void require_part(const std::string& kind, std::string_view part) {
    const auto words = tried_.kinds.find(kind);
    const auto has = [&](const auto& entry) {
      const std::string all = "+" + entry.first + "+";
      return all.find("+" + std::string(part) + "+") != std::string::npos;
    };
    require(
        words != tried_.kinds.end() && std::any_of(words->second.begin(), words->second.end(), has),
        kind + " " + std::string(part));
  }

 private:
  const PassEnvelope& tried_;
  std::string prefix_;
  std::vector<std::string>& missing_;
};

void require_masks(const Capabilities& can, const PassEnvelope& tried, Claims& claims) {
  if (can.masks.full) claims.require("mask", "full", "mask full");
  int kinds = 0;
  for (const MaskTerm& term : mask_kinds()) {
    const bool is_matrix = term.index() + 1 == std::variant_size_v<MaskTerm>;
    if (!can.masks.takes(term) || (is_matrix && !can.has(Ability::bit_masks))) continue;
    ++kinds;
    claims.require_part("mask", is_matrix ? "matrix" : mask_word(term));
  }
  if (!can.masks.intersections || kinds < 2) return;
  const auto masks = tried.kinds.find("mask");
  claims.require(
      masks != tried.kinds.end() &&
          std::any_of(masks->second.begin(), masks->second.end(),
                      [](const auto& entry) { return entry.first.find('+') != std::string::npos; }),
      "intersections of masks");
}

void require_sizes(const Capabilities& can, const PassEnvelope& tried, Claims& claims) {
  const auto range = [&](const char* name) {
    const auto found = tried.sizes.find(name);
    return found == tried.sizes.end() ? SizeRange{} : found->second;
  };
  if (can.has(Ability::grouped_heads)) claims.require(range("group").most > 1, "grouped heads");
  if (can.has(Ability::no_tokens)) {
    claims.require(range("q_tokens").least == 0, "no queries");
    claims.require(range("kv_tokens").least == 0, "no keys");
  }
  if (can.has(Ability::many_ranks)) claims.require(range("ranks").most > 1, "several ranks");
  if (can.has(Ability::threads)) claims.require(range("threads").most > 1, "several threads");
  if (can.max_head_dim == std::numeric_limits<std::int64_t>::max()) return;
  const std::int64_t widest = can.max_head_dim / can.head_dim_multiple * can.head_dim_multiple;
  for (const char* name : {"head_dim", "v_dim"}) {
    const std::int64_t most = tried.most(name);
    claims.require(most >= widest, std::string(name) + " " + std::to_string(most + 1) + " … " +
                                       std::to_string(widest));
  }
}

void require_pass(const Capabilities& can, const PassEnvelope& tried, Claims claims) {
  for (const DType dtype : can.dtypes) {
    const std::string name(dtype_info(dtype).name);
    claims.require("dtype", name, "dtype " + name);
  }
  require_masks(can, tried, claims);
  require_sizes(can, tried, claims);
  if (can.has(Ability::rectangular)) claims.require("lengths", "different", "lengths that differ");
  if (can.has(Ability::other_v_dim))
    claims.require("widths", "different", "a v_dim that is not head_dim");
  if (can.has(Ability::empty_rows))
    claims.require("rows", "some see nothing", "rows that see nothing");
  if (can.has(Ability::any_scale)) {
    for (const char* scale : {"other", "0", "negative"}) {
      if (scale != std::string("other") && !can.nonpositive_scale) continue;
      claims.require("scale", scale, std::string("scale ") + scale);
    }
  }
  for (const ModifierKind kind : kModifierKinds) {
    if (can.modifiers.knows(kind)) claims.require_part("modifiers", modifier_word(kind));
  }
}

void require_strides(const PassEnvelope& tried, std::initializer_list<const char*> tensors,
                     Claims claims) {
  for (const char* name : tensors) {
    const std::string kind = std::string("strides of ") + name;
    const auto words = tried.kinds.find(kind);
    const bool only_dense = words == tried.kinds.end() ||
                            (words->second.size() == 1 && words->second.count("dense") == 1);
    claims.require(!only_dense, kind);
  }
}

}  // namespace

std::vector<std::string> claimed_not_tried(const Capabilities& can, const Envelope& tried) {
  std::vector<std::string> missing;
  const bool is_strided = can.has(Ability::strided_inputs);
  require_pass(can, tried.forward, {tried.forward, "", missing});
  if (is_strided) {
    require_strides(tried.forward, {"q", "k", "v"}, {tried.forward, "", missing});
  }
  if (!can.has(Ability::backward)) return missing;
  if (tried.gradients.calls == 0) {
    missing.emplace_back("gradients");
    return missing;
  }
  require_pass(can, tried.gradients, {tried.gradients, "gradients: ", missing});
  if (is_strided) {
    require_strides(tried.gradients, {"q", "k", "v", "dout"},
                    {tried.gradients, "gradients: ", missing});
  }
  return missing;
}

}  // namespace ringlab::verify
