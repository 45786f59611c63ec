// Every planted mistake as a plugin: RINGLAB_MUTANT says which one, or names a subject as it is.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/mutants/mutants.h"
#include "property_tests/plugins/plugin_modifiers.h"
#include "property_tests/plugins/plugin_profile.h"
#include "property_tests/subject_list.h"
#include "reference/core/ringlab_plugin.h"

namespace {

using namespace ringlab;

constexpr DType kDTypes[RINGLAB_DTYPES] = {DType::f64, DType::f32, DType::f16, DType::bf16};

DType dtype_of_code(std::int32_t code) { return kDTypes[code]; }

Extents extents_of(const ringlab_tensor& x) {
  return {x.extents[0], x.extents[1], x.extents[2], x.extents[3]};
}

/// Calls `visit(element)` with a reference to every element in its own type.
template <class Visitor>
void for_each_element(const ringlab_tensor& x, Visitor&& visit) {
  with_element_type(dtype_of_code(x.dtype), [&](auto type) {
    using Element = decltype(type);
    const Strides s{x.strides[0], x.strides[1], x.strides[2], x.strides[3]};
    const TensorView<Element> view{static_cast<Element*>(x.data), extents_of(x), s};
    for_each_index(view.extents,
                   [&](auto b, auto h, auto t, auto c) { visit(view(b, h, t, c), b, h, t, c); });
  });
}

Tensor<double> read(const ringlab_tensor& x) {
  Tensor<double> values(extents_of(x));
  for_each_element(x, [&](const auto& element, auto b, auto h, auto t, auto c) {
    values(b, h, t, c) = static_cast<double>(element);
  });
  return values;
}

void write(const ringlab_tensor& x, const Tensor<double>& values) {
  for_each_element(x, [&](auto& element, auto b, auto h, auto t, auto c) {
    element = std::remove_reference_t<decltype(element)>(values(b, h, t, c));
  });
}

Mask read_mask(const ringlab_mask& mask, std::int64_t queries, std::int64_t keys) {
  std::vector<MaskTerm> terms;
  if ((mask.kinds & RINGLAB_MASK_BYTES) != 0) {
    terms.emplace_back(BitMask{queries, keys,
                               std::vector<std::uint8_t>(mask.bytes, mask.bytes + queries * keys),
                               "bytes"});
    return Mask(std::move(terms)).bind(queries, keys);
  }
  if ((mask.kinds & RINGLAB_MASK_CAUSAL) != 0) terms.emplace_back(CausalMask{});
  if ((mask.kinds & RINGLAB_MASK_WINDOW) != 0) {
    terms.emplace_back(WindowMask{mask.window_left, mask.window_right});
  }
  if ((mask.kinds & RINGLAB_MASK_PREFIX) != 0) terms.emplace_back(PrefixMask{mask.prefix_tokens});
  if ((mask.kinds & RINGLAB_MASK_DOCUMENTS) != 0) {
    DocumentsMask documents;
    for (std::int64_t d = 0; d < mask.documents; ++d) {
      documents.lengths.push_back(mask.starts[d + 1] - mask.starts[d]);
    }
    terms.emplace_back(std::move(documents));
  }
  return Mask(std::move(terms)).bind(queries, keys);
}

/// Which pairs are dropped follows from the seed, as in the engine.
Modifiers read_modifiers(const ringlab_modifiers& given, std::int64_t q_heads) {
  const auto per_head = [q_heads](const double* numbers) {
    return numbers == nullptr ? std::vector<double>()
                              : std::vector<double>(numbers, numbers + q_heads);
  };
  return {.softcap = given.softcap,
          .alibi_slopes = per_head(given.alibi_slopes),
          .sinks = per_head(given.sinks),
          .dropout = given.dropout,
          .dropout_seed = given.dropout_seed};
}

Problem read_problem(const ringlab_call& call) {
  const Extents q = extents_of(call.q), k = extents_of(call.k), v = extents_of(call.v);
  return {.shape = {q.batch, q.heads, k.heads, q.tokens, k.tokens, q.channels, v.channels},
          .dtype = dtype_of_code(call.q.dtype),
          .scale = call.scale,
          .mask = read_mask(call.mask, q.tokens, k.tokens),
          .modifiers = read_modifiers(call.modifiers, q.heads)};
}

LayoutKind layout_of_code(std::int32_t code) {
  if (code == RINGLAB_ZIGZAG) return LayoutKind::zigzag;
  return code == RINGLAB_STRIPED ? LayoutKind::striped : LayoutKind::contiguous;
}

RunOptions read_options(const ringlab_call& call) {
  RunOptions options;
  options.ranks = call.ranks;
  options.layout = layout_of_code(call.layout);
  options.tile_queries = call.tile_queries;
  options.tile_keys = call.tile_keys;
  options.transport = TransportKind::simulated;
  return options;
}

void attend(const verify::Subject& subject, const ringlab_call& call) {
  const AttentionTensors tensors{read(call.q), read(call.k), read(call.v)};
  AttentionInput input = tensors.input(read_problem(call));
  Tensor<double> dout;
  if (call.dout.data != nullptr) {
    dout = read(call.dout);
    input.dout = std::as_const(dout).view();
  }
  const RunResult result = subject.run(input, read_options(call));
  write(call.o, result.output.out);
  write(call.lse, result.output.lse);
  if (!result.gradients) return;
  write(call.dq, result.gradients->dq);
  write(call.dk, result.gradients->dk);
  write(call.dv, result.gradients->dv);
}

std::int32_t run(const ringlab_call* call, void* context) {
  try {
    attend(*static_cast<const verify::Subject*>(context), *call);
    return RINGLAB_OK;
  } catch (const std::exception& error) {
    std::snprintf(call->message, call->message_size, "%s", error.what());
    return 2;
  }
}

verify::Subject wanted_subject() {
  const char* name = std::getenv("RINGLAB_MUTANT");
  const std::string wanted = name != nullptr ? name : "ring";
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    if (mutant.info.id == wanted) return mutant.subject;
  }
  return verify::find_subject(wanted);
}

/// What is promised on nine ranks, with a rescale for every key: the weakest there is.
ringlab_numerics numerics_of(const verify::Subject& subject, DType dtype) {
  RunOptions options;
  options.ranks = 9;
  options.tile_keys = 1;
  const Problem problem{
      .shape = {1, 1, 1, 64, 64, 8, 8}, .dtype = dtype, .mask = Mask().bind(64, 64)};
  const NumericsProfile profile = subject.profile(problem, options);
  ringlab_numerics numerics{};
  numerics.u_accumulate = profile.u_accumulate;
  numerics.u_work = profile.u_work;
  numerics.exp_error = profile.exp_error;
  numerics.u_probability = profile.u_probability;
  numerics.u_row_sum = profile.u_row_sum;
  numerics.p_underflow = profile.p_underflow;
  numerics.u_partial = profile.u_partial;
  numerics.u_query = profile.u_query;
  numerics.u_lse = profile.u_lse;
  numerics.lse_merges = profile.lse_merges;
  numerics.exp_underflow = profile.exp_underflow;
  numerics.product_underflow = profile.product_underflow;
  return numerics;
}

ringlab_abilities abilities_of(const verify::Capabilities& can) {
  ringlab_abilities abilities{};
  for (int code = 0; code < RINGLAB_DTYPES; ++code) {
    const bool taken =
        std::find(can.dtypes.begin(), can.dtypes.end(), kDTypes[code]) != can.dtypes.end();
    if (taken) abilities.dtypes |= RINGLAB_DTYPE_BIT(code);
  }
  abilities.masks = RINGLAB_MASK_BYTES;
  for (const ModifierKind kind : kModifierKinds) {
    if (can.modifiers.knows(kind)) abilities.modifiers |= plugins::modifier_bit(kind);
  }
  for (const auto& [ability, field] : plugins::kDeclared) abilities.*field = can.has(ability);
  abilities.threads = 0;
  return abilities;
}

}  // namespace

extern "C" const ringlab_plugin* ringlab_plugin_v1(void) {
  static const verify::Subject subject = wanted_subject();
  static ringlab_plugin plugin{};
  plugin.struct_size = sizeof(plugin);
  plugin.version = RINGLAB_PLUGIN_VERSION;
  plugin.name = subject.name.c_str();
  plugin.title = subject.title.c_str();
  plugin.can = abilities_of(subject.can);
  for (int code = 0; code < RINGLAB_DTYPES; ++code) {
    if ((plugin.can.dtypes & RINGLAB_DTYPE_BIT(code)) != 0) {
      plugin.numerics[code] = numerics_of(subject, kDTypes[code]);
    }
  }
  plugin.context = const_cast<verify::Subject*>(&subject);
  plugin.run = run;
  return &plugin;
}
