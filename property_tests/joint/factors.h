// Factors of a call and their classes: head_dim 128, 8192 keys and more, mask causal. Mistakes live
// where two of them meet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/subject.h"
#include "reference/core/kinds.h"

namespace ringlab::verify {

enum class Factor : std::uint8_t {
  dtype,
  head_dim,
  v_dim,  ///< equal to head_dim, or not
  group,  ///< query heads per K/V head
  kv_heads,
  batch,
  queries,
  keys,
  mask,
  modifiers,
  scale,
  strides,  ///< of q, k and v
  threads,  ///< of a rank
  ranks,
};
constexpr std::string_view factor_name(Factor factor) {
  switch (factor) {
    case Factor::dtype:
      return "dtype";
    case Factor::head_dim:
      return "head_dim";
    case Factor::v_dim:
      return "v_dim";
    case Factor::group:
      return "heads per K/V head";
    case Factor::kv_heads:
      return "K/V heads";
    case Factor::batch:
      return "batch";
    case Factor::queries:
      return "queries";
    case Factor::keys:
      return "keys";
    case Factor::mask:
      return "mask";
    case Factor::modifiers:
      return "modifiers";
    case Factor::scale:
      return "scale";
    case Factor::strides:
      return "strides";
    case Factor::threads:
      return "threads";
    case Factor::ranks:
      return "ranks";
  }
  return "";
}
inline constexpr auto kAllFactors = all_kinds<Factor, factor_name>();
inline constexpr std::size_t kFactors = kAllFactors.size();

/// The number of the class of each factor; kNoClass where it has none: no queries, 300 channels.
inline constexpr std::int8_t kNoClass = -1;
class Classes {
 public:
  Classes() { numbers_.fill(kNoClass); }
  std::int8_t& operator[](Factor factor) { return numbers_[static_cast<std::size_t>(factor)]; }
  std::int8_t operator[](Factor factor) const { return numbers_[static_cast<std::size_t>(factor)]; }

 private:
  std::array<std::int8_t, kFactors> numbers_;
};
/// The classes of one call of a subject with these abilities, which reads the problem as it stands in
/// the input (as_read()).
Classes classes_of_call(const Capabilities& can, const AttentionInput& input,
                        const RunOptions& options);

/// Sizes of one class: both ends belong to it; the last class of a factor may have no end.
struct SizeClass {
  std::int64_t first, last;
};
/// The classes of a factor that is a size, ascending; empty for others.
std::vector<SizeClass> size_classes(Factor factor);

/// The memory orders of the inputs, by number.
enum class InputOrder : std::int8_t { dense, rows_apart, channels_apart };
/// The kinds of the terms of a class of masks, as indices of MaskTerm; empty: full, or, for the last
/// class, any other intersection.
const std::vector<std::vector<std::size_t>>& mask_classes();
/// The class of modifiers that has several, after the one without and one for each kind.
inline constexpr auto kSeveralModifiers = static_cast<std::int8_t>(1 + kModifierKinds.size());

DType dtype_of_class(std::int8_t number);

/// The words of a class after the name of its factor: "128", "512 … 2047", "causal+window".
std::string class_words(Factor factor, std::int8_t number);
/// The classes of a factor that a subject with these abilities claims to take, ascending. None for
/// sizes that follow from others: queries, where there are always as many as keys.
std::vector<std::int8_t> claimed_classes(Factor factor, const Capabilities& can);
/// The classes of each factor.
using FactorClasses = std::array<std::vector<std::int8_t>, kFactors>;
FactorClasses claimed_classes(const Capabilities& can);
/// All classes that there are.
FactorClasses known_classes();

}  // namespace ringlab::verify
