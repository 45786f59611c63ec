#include "python/core/callable.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "property_tests/endings.h"
#include "property_tests/foreign_subject.h"
#include "python/core/arrays.h"
#include "reference/core/checks.h"
#include "reference/core/machine/machine_error.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using verify::Ability;
using verify::Capabilities;

Capabilities abilities(const Wishes& wishes) {
  Capabilities can;
  const auto dtypes = wishes.take<std::vector<std::string>>("dtypes");
  for (const std::string& dtype : dtypes.value()) {
    can.dtypes.push_back(parse_dtype(dtype));
  }
  can.drop({Ability::many_ranks, Ability::counts_traffic});
  const Wishes limits(nb::cast<nb::dict>(wishes.object("limits")));
  for (std::size_t i = 0; i < verify::kAbilities; ++i) {
    const auto ability = static_cast<Ability>(i);
    const std::string word = verify::ability_word(ability);
    can.set(ability, limits.take<bool>(word.c_str()).value_or(can.has(ability)));
  }
  for (const ModifierKind kind : kModifierKinds) {
    can.modifiers.set(kind, limits.take<bool>(modifier_word(kind).data()).value_or(false));
  }
  for (const MaskTerm& kind : mask_kinds()) {
    bool& takes = can.masks.kinds[kind.index()];
    takes = limits.take<bool>(mask_word(kind).data()).value_or(takes);
  }
  can.masks.intersections = limits.take<bool>("intersections").value_or(true);
  can.masks.full = limits.take<bool>("full").value_or(true);
  can.nonpositive_scale = limits.take<bool>("nonpositive_scale").value_or(true);
  can.token_multiple = limits.take<std::int64_t>("token_multiple").value_or(1);
  check_range("token_multiple", can.token_multiple, 1, 1024);
  can.max_head_dim = limits.take<std::int64_t>("max_head_dim").value_or(can.max_head_dim);
  can.head_dim_multiple = limits.take<std::int64_t>("head_dim_multiple").value_or(1);
  check_range("max_head_dim", can.max_head_dim, 1, INT64_MAX);
  check_range("head_dim_multiple", can.head_dim_multiple, 1,
              std::min<std::int64_t>(can.max_head_dim, 1024));
  return can;
}

/// The declared arithmetic of a function. Unless told otherwise it computes in f32 (f64 for f64)
/// with the exp and log of a vector library, 4 ulp, and rescales once in 32 keys.
class ArithmeticPromise {
 public:
  explicit ArithmeticPromise(const Wishes& wishes)
      : numbers_(wishes.given("profile") ? nb::cast<nb::dict>(wishes.object("profile"))
                                         : nb::dict()) {
    take();
  }

  NumericsProfile for_problem(const Problem& problem) const {
    const std::int64_t keys = problem.shape.kv_tokens;
    NumericsProfile profile =
        carried_profile(problem.dtype, std::max<std::int64_t>(1, (keys + step_ - 1) / step_));
    const double u = profile.u_accumulate;
    profile.exp_error = 8 * u;
    profile.u_lse = 8 * u;
    if (weights_rounded_ && problem.dtype != DType::f64) round_weights(problem.dtype, profile);
    if (prescaled_) profile.u_query = 3 * u;
    for (const auto& [member, number] : told_) profile.*member = number;
    profile.lse_merges = lse_merges_;
    profile.accumulation_chain = chain_;
    const Shape& shape = problem.shape;
    profile.key_gradient_stores =
        stores_before_the_last(shape.q_tokens, queries_per_store_, shape.q_heads / shape.kv_heads);
    profile.query_gradient_stores = stores_before_the_last(keys, keys_per_store_, 1);
    return profile;
  }

 private:
  static void round_weights(DType dtype, NumericsProfile& profile) {
    profile.u_probability = dtype_info(dtype).unit_roundoff;
    profile.p_underflow = dtype_info(dtype).min_subnormal / 2;
  }

  void take() {
    constexpr std::array<std::pair<const char*, double NumericsProfile::*>, 12> kNumbers = {
        {{"u_accumulate", &NumericsProfile::u_accumulate},
         {"u_work", &NumericsProfile::u_work},
         {"exp_error", &NumericsProfile::exp_error},
         {"u_probability", &NumericsProfile::u_probability},
         {"u_row_sum", &NumericsProfile::u_row_sum},
         {"p_underflow", &NumericsProfile::p_underflow},
         {"u_partial", &NumericsProfile::u_partial},
         {"u_query", &NumericsProfile::u_query},
         {"u_product", &NumericsProfile::u_product},
         {"u_lse", &NumericsProfile::u_lse},
         {"exp_underflow", &NumericsProfile::exp_underflow},
         {"product_underflow", &NumericsProfile::product_underflow}}};
    for (const auto& [name, member] : kNumbers) {
      const std::optional<double> number = numbers_.take<double>(name);
      if (!number) continue;
      if (!(*number >= 0)) {
        throw_usage_error({name, "a number that is not negative", std::to_string(*number), ""});
      }
      told_.emplace_back(member, *number);
    }
    weights_rounded_ = numbers_.take<bool>("rounds_weights").value_or(false);
    prescaled_ = numbers_.take<bool>("prescaled").value_or(false);
    step_ = whole("keys_per_rescale", 32, 1);
    lse_merges_ = whole("lse_merges", 0, 0);
    chain_ = whole("accumulation_chain", 0, 0);
    queries_per_store_ = whole("queries_per_store", 0, 0);
    keys_per_store_ = whole("keys_per_store", 0, 0);
  }
  std::int64_t whole(const char* name, std::int64_t otherwise, std::int64_t least) const {
    const std::int64_t number = numbers_.take<std::int64_t>(name).value_or(otherwise);
    check_range(name, number, least, INT32_MAX);
    return number;
  }

  Wishes numbers_;
  std::vector<std::pair<double NumericsProfile::*, double>> told_;
  bool weights_rounded_ = false, prescaled_ = false;
  std::int64_t step_ = 32, lse_merges_ = 0, chain_ = 0;
  std::int64_t queries_per_store_ = 0, keys_per_store_ = 0;  // 0: when complete
};

nb::list list_of(const std::vector<double>& numbers) {
  nb::list list;
  for (const double number : numbers) list.append(number);
  return list;
}

/// The mask as a text whose terms file:matrixI stand for `matrices`.
void describe_mask(const Mask& mask, nb::dict& call) {
  std::string text;
  nb::list matrices;
  for (const MaskTerm& term : mask.terms()) {
    std::string word = Mask({term}).text();
    if (const auto* bits = std::get_if<BitMask>(&term)) {
      word = "file:matrix" + std::to_string(nb::len(matrices));
      matrices.append(nb::bytes(bits->bits->data(), bits->bits->size()));
    }
    text += (text.empty() ? "" : "+") + word;
  }
  call["mask"] = text.empty() ? std::string("full") : text;
  call["matrices"] = matrices;
}

/// Under the names of the function's arguments.
void describe_modifier(ModifierKind kind, const Modifiers& modifiers, nb::dict& call) {
  switch (kind) {
    case ModifierKind::softcap:
      call["softcap"] = modifiers.softcap;
      break;
    case ModifierKind::alibi:
      call["alibi_slopes"] = list_of(modifiers.alibi_slopes);
      break;
    case ModifierKind::sinks:
      call["sinks"] = list_of(modifiers.sinks);
      break;
    case ModifierKind::dropout:
      call["dropout"] = modifiers.dropout;
      call["dropout_seed"] = modifiers.dropout_seed;
      break;
  }
}

void describe_problem(const Problem& problem, nb::dict& call) {
  call["dtype"] = std::string(dtype_info(problem.dtype).name);
  call["scale"] = problem.scale;
  describe_mask(problem.mask, call);
  for (const ModifierKind kind : kModifierKinds) {
    if (problem.modifiers.has(kind)) describe_modifier(kind, problem.modifiers, call);
  }
}

nb::object fresh_array(const TensorView<const double>& values, DType dtype) {
  return with_element_type(dtype, [&](auto element) {
    return handed_over(dense_copy<decltype(element)>(values), Receiver::numpy);
  });
}

/// A result of the function as doubles. 16-bit unsigned integers are bf16, as elsewhere.
Tensor<double> result_named(const nb::dict& results, const char* name, const Extents& expected) {
  const GivenArray array = checked_array(name, nb::object(results[name]), DType::bf16);
  check_extents(name, array.extents, expected);
  return widened(array);
}

RunResult take_results(const nb::dict& results, const AttentionInput& input, bool gives_lse) {
  const Shape& shape = input.problem.shape;
  RunResult result{.output = {result_named(results, "o", shape.out()), Tensor<double>()},
                   .ranks = {}};
  if (gives_lse) result.output.lse = result_named(results, "lse", shape.lse());
  if (!input.dout) return result;
  result.gradients = {result_named(results, "dq", shape.q()),
                      result_named(results, "dk", shape.k()),
                      result_named(results, "dv", shape.v())};
  return result;
}

/// Calls the function with copies of the inputs. Copies of the call before are kept until then, so
/// that no two calls in a row see the same addresses.
class Callee {
 public:
  Callee(nb::object call, bool gives_lse, std::shared_ptr<VerifyStop> stop)
      : call_(std::move(call)), gives_lse_(gives_lse), stop_(std::move(stop)) {}

  RunResult run(const AttentionInput& input) {
    if (stop_->is_due()) throw verify::Unsupported("had no more time");
    const nb::gil_scoped_acquire held;
    try {
      return results_of(input);
    } catch (nb::python_error& error) {  // KeyboardInterrupt: what the function raises is a result
      stop_->interruption.emplace(std::move(error));
    }
    throw verify::Unsupported("was interrupted");
  }

 private:
  RunResult results_of(const AttentionInput& input) {
    const auto results = nb::cast<nb::dict>(call_(inputs_of(input)));
    if (results.contains("unsupported")) {
      throw verify::Refused("says: " + text(results, "unsupported"));
    }
    if (results.contains("given_up")) throw verify::Unsupported(text(results, "given_up"));
    if (results.contains("ran_out")) {
      throw MachineError({.where = "the function",
                          .expected = "memory, threads and descriptors for it",
                          .actual = text(results, "ran_out")});
    }
    if (results.contains("raised")) throw std::runtime_error(text(results, "raised"));
    return take_results(results, input, gives_lse_);
  }

  static std::string text(const nb::dict& results, const char* name) {
    return nb::cast<std::string>(nb::object(results[name]));
  }

  nb::dict inputs_of(const AttentionInput& input) {
    const DType dtype = input.problem.dtype;
    nb::dict call;
    call["q"] = fresh_array(input.q, dtype);
    call["k"] = fresh_array(input.k, dtype);
    call["v"] = fresh_array(input.v, dtype);
    if (input.dout) call["dout"] = fresh_array(*input.dout, dtype);
    describe_problem(input.problem, call);
    last_inputs_ = nb::make_tuple(call["q"], call["k"], call["v"]);
    return call;
  }

  nb::object call_;
  bool gives_lse_;
  std::shared_ptr<VerifyStop> stop_;
  nb::object last_inputs_;
};

}  // namespace

bool VerifyStop::is_due() const {
  return interruption || (deadline && std::chrono::steady_clock::now() > *deadline);
}

verify::Subject callable_subject(const Wishes& wishes, const std::shared_ptr<VerifyStop>& stop) {
  verify::Subject raw;
  raw.name = *wishes.take<std::string>("name");
  raw.title = raw.name + ": a function of Python";
  raw.can = abilities(wishes);
  const auto callee =
      std::make_shared<Callee>(wishes.object("call"), raw.can.has(Ability::lse), stop);
  raw.run = [callee](const AttentionInput& input, const RunOptions&) { return callee->run(input); };
  const auto promise = std::make_shared<const ArithmeticPromise>(wishes);
  raw.profile = [promise](const Problem& problem, const RunOptions&) {
    return promise->for_problem(problem);
  };
  return verify::foreign_subject(std::move(raw));
}

}  // namespace ringlab::python
