#include "property_tests/plugins/plugin_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "property_tests/plugins/plugin_mask.h"
#include "property_tests/plugins/plugin_modifiers.h"
#include "reference/core/error.h"

namespace ringlab::plugins {
namespace {

/// The largest multiple of channels to claim: every random case is made at least as wide.
constexpr std::int64_t kMostMultiple = 1024;

[[noreturn]] void throw_bad_field(const std::string& who, const char* field,
                                  const std::string& expected, const std::string& actual) {
  throw_input_error({.where = fmt::format("{}, {}", who, field),
                     .expected = expected,
                     .actual = actual,
                     .hint = "reference/core/ringlab_plugin.h says what the fields mean."});
}

/// A promise of a plugin: its field, and where it goes unless it is 0.
struct PluginPromise {
  const char* field;
  double declared;
  double* target;
};

void take(const PluginPromise& promise, const std::string& who) {
  if (promise.declared == 0) return;
  if (!(promise.declared > 0 && promise.declared < 1)) {
    throw_bad_field(who, promise.field, "0 or an error between 0 and 1",
                    fmt::format("{}", promise.declared));
  }
  *promise.target = promise.declared;
}

/// A number of keys, merges or channels.
std::int64_t count(const char* field, std::int64_t declared, const std::string& who,
                   std::int64_t most = INT64_MAX) {
  if (declared < 0 || declared > most) {
    throw_bad_field(who, field, fmt::format("0 … {}", most), std::to_string(declared));
  }
  return declared;
}

/// Refuses bits without a meaning: a plugin that sets one takes it for a claim.
struct KnownBits {
  const char* field;
  std::uint32_t declared, known;
  const char* names;
};
void check_bits(const KnownBits& bits, const std::string& who) {
  const std::uint32_t unknown = bits.declared & ~bits.known;
  if (unknown == 0) return;
  throw_bad_field(who, bits.field, bits.names,
                  fmt::format("{}, of which {} is no bit of it", bits.declared, unknown));
}

template <class Number, std::size_t kCount>
void check_reserved(const char* field, const Number (&reserved)[kCount], const std::string& who) {
  for (const Number& number : reserved) {
    if (number != 0)
      throw_bad_field(who, field, "0 in what is reserved", fmt::format("{}", number));
  }
}

void check_known(const ringlab_abilities& can, const std::string& who) {
  constexpr std::uint32_t kDTypes = (1u << RINGLAB_DTYPES) - 1;
  constexpr std::uint32_t kMasks = 2 * RINGLAB_MASK_INTERVALS - 1;
  constexpr std::uint32_t kModifiers = 2 * RINGLAB_MODIFIER_DROPOUT - 1;
  check_bits({"can.dtypes", can.dtypes, kDTypes,
              "RINGLAB_DTYPE_BIT of RINGLAB_F64, RINGLAB_F32, RINGLAB_F16, RINGLAB_BF16"},
             who);
  check_bits({"can.masks", can.masks, kMasks,
              "RINGLAB_MASK_CAUSAL, RINGLAB_MASK_WINDOW, RINGLAB_MASK_DOCUMENTS, "
              "RINGLAB_MASK_PREFIX, RINGLAB_MASK_BYTES, RINGLAB_MASK_INTERSECTIONS, "
              "RINGLAB_MASK_INTERVALS"},
             who);
  check_bits({"can.modifiers", can.modifiers, kModifiers,
              "RINGLAB_MODIFIER_SOFTCAP, RINGLAB_MODIFIER_ALIBI, RINGLAB_MODIFIER_SINKS, "
              "RINGLAB_MODIFIER_DROPOUT"},
             who);
  check_bits({"can.reserved_bits", can.reserved_bits, 0, "0 in what is reserved"}, who);
  check_reserved("can.reserved", can.reserved, who);
}

/// ringlab_abilities::modifiers, in our words.
verify::ModifierAbilities modifier_abilities(std::uint32_t abilities) {
  verify::ModifierAbilities can;
  for (const ModifierKind kind : kModifierKinds) {
    can.set(kind, (abilities & modifier_bit(kind)) != 0);
  }
  return can;
}

/// Counts a rescale for every tile but the first one's own scale.
std::int64_t rescales(std::int64_t keys, std::int64_t keys_per_rescale) {
  const std::int64_t tile = std::max<std::int64_t>(1, keys_per_rescale);
  return std::max<std::int64_t>(1, keys / tile + (keys % tile != 0));
}

}  // namespace

int dtype_index(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return RINGLAB_F64;
    case DType::f32:
      return RINGLAB_F32;
    case DType::f16:
      return RINGLAB_F16;
    case DType::bf16:
      return RINGLAB_BF16;
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      break;
  }
  throw_not_an_input_dtype(dtype);
}

// A field of 0 means "as usual" (carried_profile), any other number replaces that. u_accumulate
// sets u_work and exp_error too, unless they are given as well.
NumericsProfile plugin_profile(const ringlab_numerics& n, const Problem& problem,
                               const std::string& who) {
  check_reserved("numerics.reserved", n.reserved, who);
  const std::int64_t tile = count("keys_per_rescale", n.keys_per_rescale, who);
  NumericsProfile profile = carried_profile(problem.dtype, rescales(problem.shape.kv_tokens, tile));
  take({"u_accumulate", n.u_accumulate, &profile.u_accumulate}, who);
  if (n.u_accumulate != 0) {
    profile.u_work = profile.u_accumulate;
    profile.exp_error = std::min(4 * profile.u_accumulate, 0.5);
  }
  const PluginPromise promises[] = {
      {"u_work", n.u_work, &profile.u_work},
      {"exp_error", n.exp_error, &profile.exp_error},
      {"u_probability", n.u_probability, &profile.u_probability},
      {"u_row_sum", n.u_row_sum, &profile.u_row_sum},
      {"p_underflow", n.p_underflow, &profile.p_underflow},
      {"u_partial", n.u_partial, &profile.u_partial},
      {"u_query", n.u_query, &profile.u_query},
      {"u_product", n.u_product, &profile.u_product},
      {"u_lse", n.u_lse, &profile.u_lse},
      {"exp_underflow", n.exp_underflow, &profile.exp_underflow},
      {"product_underflow", n.product_underflow, &profile.product_underflow}};
  for (const PluginPromise& promise : promises) take(promise, who);
  profile.accumulation_chain = count("accumulation_chain", n.accumulation_chain, who);
  profile.lse_merges = count("lse_merges", n.lse_merges, who, INT32_MAX);
  const Shape& shape = problem.shape;
  profile.key_gradient_stores =
      stores_before_the_last(shape.q_tokens, count("queries_per_store", n.queries_per_store, who),
                             shape.q_heads / shape.kv_heads);
  profile.query_gradient_stores =
      stores_before_the_last(shape.kv_tokens, count("keys_per_store", n.keys_per_store, who), 1);
  return profile;
}

verify::Capabilities plugin_capabilities(const ringlab_abilities& can, const std::string& who) {
  check_known(can, who);
  verify::Capabilities result;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if ((can.dtypes & RINGLAB_DTYPE_BIT(dtype_index(dtype))) != 0) result.dtypes.push_back(dtype);
  }
  if (result.dtypes.empty()) {
    throw_bad_field(who, "can.dtypes", "RINGLAB_DTYPE_BIT of one dtype at least",
                    std::to_string(can.dtypes));
  }
  result.drop({verify::Ability::counts_traffic});
  result.set(verify::Ability::bit_masks, (can.masks & RINGLAB_MASK_BYTES) != 0);
  for (const auto& [ability, field] : kDeclared) result.set(ability, can.*field != 0);
  result.masks = mask_abilities(can.masks);
  result.modifiers = modifier_abilities(can.modifiers);
  const std::int64_t most = count("can.max_head_dim", can.max_head_dim, who);
  if (most > 0) result.max_head_dim = most;
  result.head_dim_multiple = std::max<std::int64_t>(
      1, count("can.head_dim_multiple", can.head_dim_multiple, who, kMostMultiple));
  if (result.max_head_dim < result.head_dim_multiple) {
    throw_bad_field(who, "can.max_head_dim", "at least head_dim_multiple", std::to_string(most));
  }
  return result;
}

}  // namespace ringlab::plugins
