#include "python/core/attention.h"

#include <algorithm>
#include <utility>

#include "property_tests/subject_list.h"
#include "python/core/engine.h"
#include "python/core/given_input.h"
#include "python/core/interruption.h"
#include "reference/attention/exact.h"
#include "reference/core/overflow.h"
#include "reference/model/machine_file.h"
#include "reference/model/planner.h"
#include "reference/precise/correctly_rounded.h"
#include "reference/precise/rounded_gradients.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using verify::Ability;

constexpr const char* kReference = "reference";
constexpr const char* kSubjectsTell = "ringlab.subjects() tells what each of them can";

/// Results by name, on their way to Python.
class ResultArrays {
 public:
  explicit ResultArrays(const Wishes& wishes)
      : receiver_(wishes.take<bool>("numpy").value_or(true) ? Receiver::numpy : Receiver::dlpack) {}

  template <class Element>
  void add(const char* name, Tensor<Element>&& tensor) {
    by_name_[name] = handed_over(std::move(tensor), receiver_);
  }
  template <class Element>
  void add(const char* name, std::optional<Tensor<Element>>&& tensor) {
    if (tensor) add(name, std::move(*tensor));
  }
  /// Rounded to `dtype`.
  void add_as(DType dtype, const char* name, const Tensor<double>& tensor) {
    with_element_type(
        dtype, [&](auto element) { add(name, dense_copy<decltype(element)>(tensor.view())); });
  }
  nb::dict take() { return std::move(by_name_); }

 private:
  Receiver receiver_;
  nb::dict by_name_;
};

DType lse_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

[[noreturn]] void refuse_wish(const char* wish, const char* what, const std::string& subject) {
  throw_usage_error({.where = wish,
                     .expected = std::string("a subject that ") + what,
                     .actual = subject,
                     .hint = kSubjectsTell});
}

// Wishes that would have no effect are refused.
void check_reference_wishes(const Wishes& wishes) {
  if (wishes.given("auto")) refuse_wish("auto", "runs on ranks", kReference);
  for (const RunOption& option : run_options()) {
    const std::string name = name_of(option);
    if (option.group != OptionGroup::run || option.needs == Feature::threads) continue;
    if (wishes.given(name.c_str())) refuse_wish(name.c_str(), "runs on ranks", kReference);
  }
}

void check_wishes(const verify::Subject& subject, const GivenInput& given, const Wishes& wishes) {
  if (given.dout && !subject.can.has(Ability::backward))
    refuse_wish("dout", "has gradients", subject.name);
  if (wishes.take<bool>("differentiable").value_or(false) && !subject.can.has(Ability::backward)) {
    refuse_wish("tensors that require gradients", "has gradients", subject.name);
  }
  if (given.problem.modifiers.any() && !subject.can.modifiers.any()) {
    refuse_wish("softcap, alibi, sinks, dropout", "modifies scores", subject.name);
  }
  if (wishes.take<bool>("with_error").value_or(false)) {
    refuse_wish("with_error", "bounds its own error: \"reference\"", subject.name);
  }
  if (wishes.take<bool>("exact").value_or(false)) {
    refuse_wish("exact", "rounds correctly: \"reference\"", subject.name);
  }
  if (wishes.given("auto") && !subject.can.has(Ability::schedules)) {
    refuse_wish("auto", "has schedules to choose from: \"optimized\"", subject.name);
  }
  for (const RunOption& option : run_options()) {
    if (option.group != OptionGroup::run || !wishes.given(name_of(option).c_str())) continue;
    const std::string expected = verify::why_without_effect(subject, option, {});
    if (expected.empty()) continue;
    throw_usage_error({name_of(option), expected, subject.name, kSubjectsTell});
  }
}

/// The options, with the fastest way of the machine of "auto" where that is wished.
RunOptions with_auto(RunOptions options, const GivenInput& given, const Wishes& wishes) {
  const auto machine = wishes.take<std::string>("auto");
  if (!machine) return options;
  for (const char* chosen : {"layout", "schedule", "slots"}) {
    if (!wishes.given(chosen)) continue;
    throw_usage_error({chosen, "to be left to auto", "both", "Leave out one of them."});
  }
  model::Job job{.problem = given.problem, .options = options};
  if (given.dout) job.passes.push_back(Pass::backward);
  const nb::gil_scoped_release released;
  return model::fastest_way(job, model::machine_named(*machine));
}

struct ExactResults {
  ExactForward forward;
  std::optional<ExactBackward> backward = {};
};

ExactResults exact_results(const GivenInput& given, int threads) {
  Interruption interruption;
  const auto progress = [&](auto, auto) { interruption.check(); };
  return interruption.listen([&] {
    const WidenedInput wide = widened(given);
    const AttentionInput input = wide.input();
    ExactResults exact{.forward = exact_forward(input, {.threads = threads, .progress = progress})};
    if (input.dout) exact.backward = exact_backward(input, *input.dout, threads, progress);
    return exact;
  });
}

nb::dict with_errors(ExactResults&& exact, ResultArrays results) {
  results.add("o", std::move(exact.forward.out));
  results.add("lse", std::move(exact.forward.lse));
  results.add("o_error", std::move(exact.forward.out_error));
  results.add("lse_error", std::move(exact.forward.lse_error));
  if (!exact.backward) return results.take();
  results.add("dq", std::move(exact.backward->dq));
  results.add("dk", std::move(exact.backward->dk));
  results.add("dv", std::move(exact.backward->dv));
  results.add("dq_error", std::move(exact.backward->dq_error));
  results.add("dk_error", std::move(exact.backward->dk_error));
  results.add("dv_error", std::move(exact.backward->dv_error));
  return results.take();
}

/// Results in doubles, rounded to the types of the inputs' dtype.
template <class Output, class Gradients>
nb::dict rounded(DType dtype, const Output& output, const std::optional<Gradients>& gradients,
                 ResultArrays results) {
  results.add_as(dtype, "o", output.out);
  results.add_as(lse_dtype(dtype), "lse", output.lse);
  if (gradients) {
    results.add_as(dtype, "dq", gradients->dq);
    results.add_as(dtype, "dk", gradients->dk);
    results.add_as(dtype, "dv", gradients->dv);
  }
  return results.take();
}

struct RoundedResults {
  CorrectlyRounded forward;
  std::optional<RoundedGradients> backward = {};
};

RoundedResults rounded_results(const GivenInput& given, int threads) {
  Interruption interruption;
  const PreciseOptions work{.threads = threads,
                            .progress = [&](auto, auto) { interruption.check(); }};
  return interruption.listen([&] {
    const WidenedInput wide = widened(given);
    const AttentionInput input = wide.input();
    const DType dtype = given.problem.dtype;
    RoundedResults results{.forward =
                               correctly_rounded_forward(input, {.dtype = dtype, .work = work})};
    if (input.dout) results.backward = rounded_backward(input, *input.dout, dtype, work);
    return results;
  });
}

nb::dict of_reference(const GivenInput& given, const Wishes& wishes) {
  check_reference_wishes(wishes);
  const int threads = options_from(wishes).threads;
  if (wishes.take<bool>("exact").value_or(false)) {
    if (wishes.take<bool>("with_error").value_or(false)) {
      refuse_wish("with_error", "has errors to tell", "the exact reference");
    }
    const RoundedResults exact = rounded_results(given, threads);
    return rounded(given.problem.dtype, exact.forward, exact.backward, ResultArrays(wishes));
  }
  ExactResults exact = exact_results(given, threads);
  ResultArrays results(wishes);
  if (wishes.take<bool>("with_error").value_or(false)) {
    return with_errors(std::move(exact), std::move(results));
  }
  return rounded(given.problem.dtype, exact.forward, exact.backward, std::move(results));
}

nb::dict of_engine(const GivenInput& given, const RunOptions& options, const Wishes& wishes) {
  return with_element_type(given.problem.dtype, [&](auto element) {
    Interruption interruption;
    const ring::EngineParts parts{.work_done = [&](auto) { interruption.check(); }};
    auto computed = interruption.listen(
        [&] { return run_engine_on<decltype(element)>(given, options, parts); });
    ResultArrays results(wishes);
    results.add("o", std::move(computed.out));
    results.add("lse", std::move(computed.lse));
    results.add("dq", std::move(computed.dq));
    results.add("dk", std::move(computed.dk));
    results.add("dv", std::move(computed.dv));
    return results.take();
  });
}

nb::dict of_stage(const verify::Subject& subject, const GivenInput& given,
                  const RunOptions& options, const Wishes& wishes) {
  const RunResult computed = [&] {
    const nb::gil_scoped_release released;
    const WidenedInput wide = widened(given);
    return subject.run(wide.input(), options);
  }();
  return rounded(given.problem.dtype, computed.output, computed.gradients, ResultArrays(wishes));
}

/// A warning of Python, at the line that called ringlab.attention().
void warn_of_overflow(const GivenInput& given) {
  const std::string note = with_element_type(given.problem.dtype, [&](auto element) {
    using Element = decltype(element);
    return overflow_note(given.problem, largest_norm(given.q.view<Element>()),
                         largest_norm(given.k.view<Element>()));
  });
  constexpr Py_ssize_t kCaller = 3;
  if (note.empty()) return;
  if (PyErr_WarnEx(PyExc_RuntimeWarning, note.c_str(), kCaller) < 0) throw nb::python_error();
}

nb::dict ability(const verify::Subject& subject) {
  nb::list dtypes;
  for (const DType dtype : subject.can.dtypes) dtypes.append(dtype_info(dtype).name.data());
  nb::dict can;
  can["name"] = subject.name.c_str();
  can["title"] = subject.title.c_str();
  can["dtypes"] = nb::tuple(dtypes);
  can["ranks"] = subject.can.has(Ability::many_ranks);
  can["backward"] = subject.can.has(Ability::backward);
  can["schedules"] = subject.can.has(Ability::schedules);
  can["slots"] = verify::honours(subject.can, Feature::slots);
  can["threads"] = subject.can.has(Ability::threads);
  can["modifiers"] = subject.can.modifiers.any();
  can["bounds_its_error"] = false;
  return can;
}

nb::list subjects() {
  verify::Subject reference;
  reference.name = kReference;
  reference.title = "the exact reference: float64, compensated, with a bound on its own error";
  reference.can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  reference.can.drop({Ability::many_ranks});
  reference.can.add({Ability::backward, Ability::threads});
  reference.can.modifiers = verify::kAllModifiers;
  nb::list abilities;
  abilities.append(ability(reference));
  abilities[0]["bounds_its_error"] = true;
  for (const verify::Subject& subject : verify::all_subjects()) abilities.append(ability(subject));
  return abilities;
}

/// The module's mask as bytes (q_tokens, kv_tokens).
nb::object visible_pairs(const nb::dict& wishes, std::int64_t q_tokens, std::int64_t kv_tokens) {
  Shape shape;
  shape.q_tokens = q_tokens;
  shape.kv_tokens = kv_tokens;
  const Mask mask = mask_from(Wishes(wishes), shape);
  nb::bytearray pairs(nullptr, 0);
  const std::int64_t count = checked_size({1, 1, q_tokens, kv_tokens});
  pairs.resize(static_cast<std::size_t>(count));
  char* next = static_cast<char*>(pairs.data());
  for (std::int64_t i = 0; i < q_tokens; ++i) {
    for (std::int64_t j = 0; j < kv_tokens; ++j) *next++ = mask.allows(i, j) ? 1 : 0;
  }
  return pairs;
}

}  // namespace

nb::dict attention(const nb::dict& arrays, const nb::dict& named_wishes) {
  const Wishes wishes(named_wishes);
  const std::string name = wishes.take<std::string>("subject").value_or(kReference);
  const std::optional<verify::Subject> found =
      name == kReference ? std::nullopt : std::optional(verify::find_subject(name));
  const GivenInput given = given_input(arrays, wishes);
  warn_of_overflow(given);
  if (!found) return of_reference(given, wishes);
  const verify::Subject& subject = *found;
  check_wishes(subject, given, wishes);
  RunOptions options = options_from(wishes);
  options.tile_queries = subject.tile_queries;
  options.tile_keys = subject.tile_keys;
  if (subject.can.has(Ability::schedules)) {
    return of_engine(given, with_auto(options, given, wishes), wishes);
  }
  return of_stage(subject, given, options, wishes);
}

void add_attention(nb::module_& module) {
  module.def("attention", &attention);
  module.def("subjects", &subjects);
  module.def("visible_pairs", &visible_pairs);
  nb::list masks, modifiers;
  for (const MaskTerm& kind : mask_kinds()) {
    if (!std::holds_alternative<BitMask>(kind)) masks.append(mask_word(kind).data());
  }
  for (const ModifierKind kind : kModifierKinds) modifiers.append(modifier_word(kind).data());
  module.attr("MASKS") = nb::tuple(masks);
  module.attr("MODIFIERS") = nb::tuple(modifiers);
}

}  // namespace ringlab::python
