#include "property_tests/joint/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "property_tests/foreign_subject.h"

namespace ringlab::verify {
namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
constexpr std::array kDTypes = {DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr std::size_t kMatrix = std::variant_size_v<MaskTerm> - 1;

std::int8_t class_of_size(Factor factor, std::int64_t size) {
  const std::vector<SizeClass> classes = size_classes(factor);
  for (std::size_t number = 0; number < classes.size(); ++number) {
    if (classes[number].first <= size && size <= classes[number].last)
      return static_cast<std::int8_t>(number);
  }
  return kNoClass;
}

std::int8_t class_of_mask(const Mask& mask) {
  std::set<std::size_t> kinds;
  for (const MaskTerm& term : mask.terms()) kinds.insert(term.index());
  const std::vector<std::size_t> sorted(kinds.begin(), kinds.end());
  const auto& classes = mask_classes();
  const auto found = std::find(classes.begin(), classes.end() - 1, sorted);
  return static_cast<std::int8_t>(found - classes.begin());
}

std::int8_t class_of_modifiers(const Modifiers& modifiers) {
  std::int8_t found = 0;
  for (std::size_t kind = 0; kind < kModifierKinds.size(); ++kind) {
    if (!modifiers.has(kModifierKinds[kind])) continue;
    found = found == 0 ? static_cast<std::int8_t>(1 + kind) : kSeveralModifiers;
  }
  return found;
}

InputOrder order_of(const TensorView<const double>& view) {
  if (view.extents.size() == 0 || is_dense(view)) return InputOrder::dense;
  return view.extents.channels > 1 && view.strides.channel != 1 ? InputOrder::channels_apart
                                                                : InputOrder::rows_apart;
}

bool takes(const Capabilities& can, std::size_t kind) {
  return can.masks.kinds[kind] && (kind != kMatrix || can.has(Ability::bit_masks));
}

bool claims_mask(const Capabilities& can, std::size_t number) {
  const auto& classes = mask_classes();
  if (number + 1 < classes.size()) {
    const std::vector<std::size_t>& kinds = classes[number];
    if (kinds.empty()) return can.masks.full;
    return std::all_of(kinds.begin(), kinds.end(), [&](auto kind) { return takes(can, kind); }) &&
           (kinds.size() < 2 || can.masks.intersections);
  }
  // Further intersections need three kinds, or a matrix and another.
  return can.masks.intersections && takes(can, kMatrix - 1) &&
         (takes(can, kMatrix) || takes(can, 0) || takes(can, 1));
}

bool claims_modifiers(const Capabilities& can, std::int8_t number) {
  if (number == 0) return true;
  const auto known = [&](ModifierKind kind) { return can.modifiers.knows(kind); };
  if (number == kSeveralModifiers) {
    return std::count_if(kModifierKinds.begin(), kModifierKinds.end(), known) > 1;
  }
  return known(kModifierKinds[static_cast<std::size_t>(number - 1)]);
}

/// True when the subject takes a head width of the class.
bool claims_channels(const Capabilities& can, const SizeClass& channels) {
  const std::int64_t most = std::min(channels.last, can.max_head_dim);
  return most / can.head_dim_multiple * can.head_dim_multiple >= channels.first;
}

std::int8_t count_classes(Factor factor) {
  switch (factor) {
    case Factor::dtype:
      return kDTypes.size();
    case Factor::mask:
      return static_cast<std::int8_t>(mask_classes().size());
    case Factor::modifiers:
      return kSeveralModifiers + 1;
    case Factor::strides:
      return 3;
    case Factor::v_dim:
    case Factor::scale:
      return 2;
    default:
      return static_cast<std::int8_t>(size_classes(factor).size());
  }
}

bool claims(Factor factor, std::int8_t number, const Capabilities& can) {
  switch (factor) {
    case Factor::dtype:
      return std::count(can.dtypes.begin(), can.dtypes.end(), dtype_of_class(number)) > 0;
    case Factor::head_dim:
      return claims_channels(can, size_classes(factor)[static_cast<std::size_t>(number)]);
    case Factor::v_dim:
      return number == 0 || can.has(Ability::other_v_dim);
    case Factor::group:
      return number == 0 || can.has(Ability::grouped_heads);
    case Factor::queries:
      return can.has(Ability::rectangular);
    case Factor::mask:
      return claims_mask(can, static_cast<std::size_t>(number));
    case Factor::modifiers:
      return claims_modifiers(can, number);
    case Factor::scale:
      return number == 0 || can.has(Ability::any_scale);
    case Factor::strides:
      return number == 0 || can.has(Ability::strided_inputs);
    case Factor::threads:
      return number == 0 || can.has(Ability::threads);
    case Factor::ranks:
      return number == 0 || can.has(Ability::many_ranks);
    default:
      return true;
  }
}

}  // namespace

DType dtype_of_class(std::int8_t number) { return kDTypes[static_cast<std::size_t>(number)]; }

std::vector<SizeClass> size_classes(Factor factor) {
  switch (factor) {
    case Factor::head_dim:
      return {{1, 31}, {32, 63}, {64, 64}, {65, 127}, {128, 128}, {129, 255}, {256, 256}};
    case Factor::group:
      return {{1, 1}, {2, 3}, {4, 7}, {8, kNoEnd}};
    case Factor::kv_heads:
      return {{1, 1}, {2, 7}, {8, 16}, {17, kNoEnd}};
    case Factor::batch:
      return {{1, 1}, {2, 8}, {9, 64}, {65, kNoEnd}};
    case Factor::queries:
      return {{1, 1}, {2, 15}, {16, 127}, {128, kNoEnd}};
    case Factor::keys:
      return {{1, 15}, {16, 127}, {128, 511}, {512, 2047}, {2048, 8191}, {8192, kNoEnd}};
    case Factor::threads:
      return {{1, 1}, {2, kNoEnd}};
    case Factor::ranks:
      return {{1, 1}, {2, 4}, {5, kNoEnd}};
    default:
      return {};
  }
}

const std::vector<std::vector<std::size_t>>& mask_classes() {
  static const auto index = [](const MaskTerm& term) { return term.index(); };
  static const std::size_t causal = index(CausalMask{}), window = index(WindowMask{}),
                           documents = index(DocumentsMask{}), prefix = index(PrefixMask{}),
                           matrix = index(BitMask{});
  static const std::vector<std::vector<std::size_t>> classes = {{},
                                                                {causal},
                                                                {window},
                                                                {documents},
                                                                {prefix},
                                                                {matrix},
                                                                {causal, window},
                                                                {causal, documents},
                                                                {window, documents},
                                                                {window, prefix},
                                                                {documents, prefix},
                                                                {}};
  return classes;
}

std::string class_words(Factor factor, std::int8_t number) {
  const auto at = static_cast<std::size_t>(number);
  if (factor == Factor::dtype) return std::string(dtype_info(dtype_of_class(number)).name);
  if (factor == Factor::v_dim) return number == 0 ? "= head_dim" : "another";
  if (factor == Factor::scale) return number == 0 ? "1/sqrt(head_dim)" : "another";
  if (factor == Factor::strides) {
    constexpr std::array kOrders = {"dense", "of rows apart", "of channels apart"};
    return kOrders[at];
  }
  if (factor == Factor::modifiers) {
    if (number == 0) return "none";
    return number == kSeveralModifiers ? "several"
                                       : std::string(modifier_word(kModifierKinds[at - 1]));
  }
  if (factor == Factor::mask) {
    if (at + 1 == mask_classes().size()) return "another intersection";
    std::string words;
    for (const std::size_t kind : mask_classes()[at]) {
      words += words.empty() ? "" : "+";
      words += kind == kMatrix ? "matrix" : mask_word(mask_kinds()[kind]);
    }
    return words.empty() ? "full" : words;
  }
  const SizeClass sizes = size_classes(factor)[at];
  if (sizes.first == sizes.last) return fmt::format("{}", sizes.first);
  if (sizes.last == kNoEnd) return fmt::format("{} …", sizes.first);
  return fmt::format("{} … {}", sizes.first, sizes.last);
}

std::vector<std::int8_t> claimed_classes(Factor factor, const Capabilities& can) {
  std::vector<std::int8_t> claimed;
  for (std::int8_t number = 0; number < count_classes(factor); ++number) {
    if (claims(factor, number, can)) claimed.push_back(number);
  }
  return claimed;
}

FactorClasses known_classes() {
  FactorClasses classes;
  for (const Factor factor : kAllFactors) {
    std::vector<std::int8_t>& numbers = classes[static_cast<std::size_t>(factor)];
    numbers.resize(static_cast<std::size_t>(count_classes(factor)));
    std::iota(numbers.begin(), numbers.end(), std::int8_t{0});
  }
  return classes;
}

FactorClasses claimed_classes(const Capabilities& can) {
  FactorClasses classes;
  for (const Factor factor : kAllFactors) {
    classes[static_cast<std::size_t>(factor)] = claimed_classes(factor, can);
  }
  return classes;
}

Classes classes_of_call(const Capabilities& can, const AttentionInput& input,
                        const RunOptions& options) {
  const Problem& problem = input.problem;
  const Shape& s = problem.shape;
  Classes classes;
  const auto size = [&](Factor factor, std::int64_t value) {
    classes[factor] = class_of_size(factor, value);
  };
  const auto dtype = std::find(kDTypes.begin(), kDTypes.end(), problem.dtype);
  if (dtype != kDTypes.end())
    classes[Factor::dtype] = static_cast<std::int8_t>(dtype - kDTypes.begin());
  size(Factor::head_dim, s.head_dim);
  classes[Factor::v_dim] = s.v_dim != s.head_dim;
  size(Factor::group, s.kv_heads == 0 ? 0 : s.q_heads / s.kv_heads);
  size(Factor::kv_heads, s.kv_heads);
  size(Factor::batch, s.batch);
  if (can.has(Ability::rectangular)) size(Factor::queries, s.q_tokens);
  size(Factor::keys, s.kv_tokens);
  classes[Factor::mask] = class_of_mask(problem.mask);
  classes[Factor::modifiers] = class_of_modifiers(problem.modifiers);
  classes[Factor::scale] = problem.scale != default_scale(std::max<std::int64_t>(1, s.head_dim));
  const auto order = can.has(Ability::strided_inputs)
                         ? std::max({order_of(input.q), order_of(input.k), order_of(input.v)})
                         : InputOrder::dense;
  classes[Factor::strides] = static_cast<std::int8_t>(order);
  size(Factor::threads, can.has(Ability::threads) ? options.threads : 1);
  size(Factor::ranks, can.has(Ability::many_ranks) ? options.ranks : 1);
  return classes;
}

}  // namespace ringlab::verify
