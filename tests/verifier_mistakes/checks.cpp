#include "tests/verifier_mistakes/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "property_tests/generators/cases.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/report.h"
#include "tests/property_tests/naive_subject.h"
#include "tests/verifier_mistakes/bound_checks.h"

namespace ringlab::verify {
namespace {

// --- wrong by a known amount
// ------------------------------------------------------------------------

/// One element of a result, and how far it is to be from the exact one, in tolerances.
struct Blow {
  Tensor<double> AttentionOutput::*output = nullptr;
  Tensor<double> AttentionGradients::*gradient = nullptr;
  double tolerances = 0;  ///< NaN: the element is NaN
};

/// The last element, which is the first that is forgotten.
void strike(Tensor<double>& got, const Tensor<double>& exact, const Tensor<double>& allowed,
            double tolerances) {
  got.values().back() = exact.values().back() + tolerances * allowed.values().back();
}

void strike_output(const Blow& blow, const Subject& subject, const Trial& trial,
                   RunResult& result) {
  const Judgement truth = judge(subject, trial);
  const bool is_lse = blow.output == &AttentionOutput::lse;
  strike(result.output.*blow.output, is_lse ? truth.exact.lse : truth.exact.out,
         is_lse ? truth.allowed.lse : truth.allowed.out, blow.tolerances);
}

void strike_gradient(const Blow& blow, const Subject& subject, const AttentionInput& input,
                     RunResult& result) {
  const ExactBackward exact = exact_backward(input, *input.dout);
  const BackwardTolerance allowed =
      backward_tolerance(input, *input.dout, exact, subject.profile(input.problem, {}));
  const bool is_dq = blow.gradient == &AttentionGradients::dq;
  const bool is_dk = blow.gradient == &AttentionGradients::dk;
  strike((*result.gradients).*blow.gradient,
         is_dq   ? exact.dq
         : is_dk ? exact.dk
                 : exact.dv,
         is_dq   ? allowed.dq
         : is_dk ? allowed.dk
                 : allowed.dv,
         blow.tolerances);
}

Subject struck(Subject subject, const Blow& blow, const Case& c) {
  const Subject correct = subject;
  subject.run = [correct, blow, c](const AttentionInput& input, const RunOptions& options) {
    RunResult result = correct.run(input, options);
    if (blow.output) strike_output(blow, correct, make_trial(c), result);
    if (blow.gradient) strike_gradient(blow, correct, input, result);
    return result;
  };
  return subject;
}

Case small_case(DType dtype) {
  Case c;
  c.seed = 7;
  c.shape = {.batch = 1,
             .q_heads = 2,
             .kv_heads = 1,
             .q_tokens = 5,
             .kv_tokens = 6,
             .head_dim = 3,
             .v_dim = 4};
  c.dtype = dtype;
  c.mask = "causal";
  c.transport = TransportKind::simulated;
  return c;
}

std::string expect(const char* what, const LawResult& result, Outcome outcome) {
  if (result.outcome == outcome) return "";
  return fmt::format("{} is {}", what,
                     result.outcome == Outcome::held     ? "held: " + result.message
                     : result.outcome == Outcome::broken ? "broken: " + result.message
                                                         : "discarded: " + result.message);
}

struct NamedBlow {
  const char* name;
  Blow blow;
};

std::string elements_are_compared(const std::string& subject_name, const std::string& law_id,
                                  const std::vector<NamedBlow>& places) {
  const Subject subject = subject_name.empty() ? naive_subject() : find_subject(subject_name);
  const Law& law = find_law(law_id);
  const Case c = small_case(DType::f32);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [name, place] : places) {
    for (const double tolerances : {-0.5, 0.5, -1.5, 2.0, kNaN}) {
      Blow blow = place;
      blow.tolerances = tolerances;
      const Outcome outcome = std::abs(tolerances) < 1 ? Outcome::held : Outcome::broken;
      const std::string what = fmt::format("{} off by {} tolerances", name, tolerances);
      const std::string complaint =
          expect(what.c_str(), run_law(struck(subject, blow, c), law, c), outcome);
      if (!complaint.empty()) return complaint;
    }
  }
  return "";
}

std::string outputs_are_compared() {
  return elements_are_compared(
      "", "equals_reference",
      {{"o", {.output = &AttentionOutput::out}}, {"lse", {.output = &AttentionOutput::lse}}});
}

std::string gradients_are_compared() {
  return elements_are_compared("backward", "gradients_equal_reference",
                               {{"dq", {.gradient = &AttentionGradients::dq}},
                                {"dk", {.gradient = &AttentionGradients::dk}},
                                {"dv", {.gradient = &AttentionGradients::dv}}});
}

// --- how a search counts and remembers
// ---------------------------------------------------------------

Law law_of(std::function<LawResult(const Subject&, const Case&)> check) {
  return {.id = "T", .name = "a_law_of_the_self_check", .statement = "", .check = std::move(check)};
}

std::string cases_are_counted() {
  int held_cases = 0, discarded_cases = 0;
  const Law every_other = law_of([&](const Subject&, const Case& c) -> LawResult {
    if (c.shape.kv_tokens % 2 == 0) {
      ++held_cases;
      return {};
    }
    ++discarded_cases;
    return {Outcome::discarded, 0, "odd"};
  });
  const LawVerdict verdict = verify_law(naive_subject(), every_other, {.cases_per_law = 20});
  if (verdict.cases != 20 || held_cases != 20 || verdict.discarded != discarded_cases) {
    return fmt::format("{} held and {} discarded were counted of {} and {}", verdict.cases,
                       verdict.discarded, held_cases, discarded_cases);
  }
  const Law never = law_of([](const Subject&, const Case&) {
    return LawResult{Outcome::discarded, 0, "always"};
  });
  const LawVerdict nothing = verify_law(naive_subject(), never, {.cases_per_law = 5});
  return nothing.cases == 0 && !nothing.skipped.empty() ? "" : "a law without cases passed";
}

std::string unbounded_comparisons_show_nothing() {
  for (const double roundoff : {0.9, 0.05}) {
    Subject zeros = with_profile(naive_subject(), [&](NumericsProfile& profile) {
      profile.u_accumulate = profile.u_work = roundoff;
      profile.exp_error = 0.5;
    });
    zeros = with_results(zeros, [](RunResult& result, const AttentionInput&, const RunOptions&) {
      for (double& x : result.output.out.values()) x = 0;
      for (double& x : result.output.lse.values()) x = std::isinf(x) ? x : 0;
    });
    for (const char* id : {"equals_reference", "P14", "P58"}) {
      const LawVerdict verdict = verify_law(zeros, find_law(id), {.cases_per_law = 40});
      if (!verdict.failure && verdict.skipped.empty()) return fmt::format("zeros keep {}", id);
    }
  }
  return "";
}

std::string refusals_are_counted() {
  const Law refusing =
      law_of([](const Subject&, const Case&) -> LawResult { throw Refused("will not"); });
  const LawVerdict verdict = verify_law(naive_subject(), refusing, {.cases_per_law = 5});
  return verdict.refused > 0 && verdict.refused == verdict.discarded
             ? ""
             : fmt::format("{} of {} refusals were counted", verdict.refused, verdict.discarded);
}

std::string failures_are_remembered() {
  const Law wide = law_of([](const Subject&, const Case& c) -> LawResult {
    if (c.shape.q_tokens < 3) return {};
    return {Outcome::broken, 0, fmt::format("{} tokens", c.shape.q_tokens)};
  });
  const LawVerdict verdict = verify_law(naive_subject(), wide, {.cases_per_law = 40});
  if (!verdict.failure) return "no failure was found";
  const Case& shrunk = verdict.failure->shrunk;
  if (shrunk.shape.q_tokens != 3) return "shrunk to " + describe(shrunk);
  return expect("the shrunk case", run_law(naive_subject(), wide, shrunk), Outcome::broken);
}

std::string exceptions_are_failures() {
  Subject throwing = naive_subject();
  throwing.run = [](const AttentionInput&, const RunOptions&) -> RunResult {
    throw std::runtime_error("no");
  };
  return expect("a subject that throws",
                run_law(throwing, find_law("equals_reference"), small_case(DType::f32)),
                Outcome::broken);
}

std::string exhausted_memory_is_no_verdict() {
  Subject starving = naive_subject();
  starving.run = [](const AttentionInput&, const RunOptions&) -> RunResult {
    throw std::bad_alloc();
  };
  try {
    run_law(starving, find_law("equals_reference"), small_case(DType::f32));
  } catch (const MachineError&) {
    return "";
  }
  return "a subject for which there was no memory was judged";
}

// --- subjects of which we know
// -----------------------------------------------------------------------

/// Its largest error is that of rounding to bf16, half a unit in the last place, which the bound
/// has to allow and little more.
std::string bounds_are_tight() {
  const LawVerdict verdict =
      verify_law(naive_subject(), find_law("equals_reference"), {.cases_per_law = 60});
  if (verdict.failure) return verdict.failure->message;
  return verdict.worst_ratio > 0.4 ? "" : fmt::format("worst ratio {}", verdict.worst_ratio);
}

std::string the_correct_subject_passes() {
  const SubjectVerdict verdict = verify_subject(naive_subject(), {.cases_per_law = 4});
  for (const LawVerdict& law : verdict.laws) {
    if (law.failure) return law.id + ": " + law.failure->message;
  }
  return verdict.laws.size() == all_laws().size() ? "" : "some laws are missing";
}

/// Random cases, and a few that are larger than the blocks of the fast oracle.
std::vector<Trial> oracle_trials() {
  std::vector<Trial> trials;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draws draws(seed);
    Case c = random_case(draws);
    if (seed % 20 == 0) {
      c.shape.batch = 1;
      c.shape.q_tokens = c.shape.kv_tokens = 150 + 37 * static_cast<std::int64_t>(seed / 20);
      c = fitted(c);
    }
    trials.push_back(make_trial(c));
  }
  return trials;
}

std::string agreement(const Trial& trial, const ExactForward& one, const ExactForward& other) {
  const LawResult result =
      both(matches("o", one.out, other.out, added(one.out_error, other.out_error)),
           matches("lse", one.lse, other.lse, added(one.lse_error, other.lse_error)));
  if (result.outcome == Outcome::broken) return result.message;
  // An oracle that promises nothing agrees with anything: 1e-9 of the largest value is generous.
  const auto largest = [](const Tensor<double>& x) {
    double most = 0;
    for (const double value : x.values()) most = std::max(most, std::abs(value));
    return most;
  };
  const bool is_vague = largest(one.out_error) > 1e-9 * largest(trial.data.v) + 1e-30;
  return is_vague ? fmt::format("an error of {} is possible", largest(one.out_error)) : "";
}

std::string oracles_agree() {
  for (Trial& trial : oracle_trials()) {
    trial.problem.modifiers = {};
    const std::string complaint =
        agreement(trial, fast_forward(trial.input()), exact_forward(trial.input()));
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string mistakes_are_found() {
  for (int i = 1; i <= static_cast<int>(Mistake::queries_in_f16); ++i) {
    const auto mistake = static_cast<Mistake>(i);
    const LawVerdict verdict = verify_law(naive_subject(mistake), find_law("equals_reference"),
                                          {.cases_per_law = 60, .shrink = false});
    if (!verdict.failure) return fmt::format("mistake {} was not found", i);
  }
  return "";
}

}  // namespace

std::vector<SelfCheck> self_checks() {
  return {{"an exception is a failure", exceptions_are_failures},
          {"exhausted memory is no verdict", exhausted_memory_is_no_verdict},
          {"every element of o and lse is compared", outputs_are_compared},
          {"every element of dq, dk and dv is compared", gradients_are_compared},
          {"cases are counted as what they were", cases_are_counted},
          {"bounds that zeros keep show nothing", unbounded_comparisons_show_nothing},
          {"refusals are counted", refusals_are_counted},
          {"a failure is shrunk to the least that fails", failures_are_remembered},
          {"the bounds are not much wider than rounding", bounds_are_tight},
          {"the fast oracle agrees with the exact one", oracles_agree},
          {"bounds are no narrower than the sums they are about", bounds_cover_every_sum},
          {"errors are those of their own head", errors_are_those_of_their_own_head},
          {"the oracle promises what it can keep", the_oracle_promises_what_it_can_keep},
          {"planted mistakes are found", mistakes_are_found},
          {"what is correct passes", the_correct_subject_passes}};
}

}  // namespace ringlab::verify
