// The exact reference as a subject.
#include <chrono>
#include <string>
#include <utility>

#include "property_tests/endings.h"
#include "property_tests/subject_list.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

Tensor<double> rounded_to(DType dtype, Tensor<double> tensor) {
  for (double& x : tensor.values()) x = round_to(dtype, x);
  return tensor;
}

RunResult computed(const AttentionInput& input, int threads) {
  const DType dtype = input.problem.dtype;
  const DType lse_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto start = std::chrono::steady_clock::now();
  ExactForward forward = exact_forward(input, {.threads = threads});
  RunResult result{.output = {rounded_to(dtype, std::move(forward.out)),
                              rounded_to(lse_dtype, std::move(forward.lse))},
                   .ranks = {}};
  if (input.dout) {
    ExactBackward backward = exact_backward(input, *input.dout, threads);
    result.gradients = {rounded_to(dtype, std::move(backward.dq)),
                        rounded_to(dtype, std::move(backward.dk)),
                        rounded_to(dtype, std::move(backward.dv))};
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// Inputs that are not finite have no exact answer in doubles.
RunResult run_exactly(const AttentionInput& input, const RunOptions& options) {
  try {
    return computed(input, options.threads);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::input)
      throw Unsupported(std::string("has no answer: ") + error.what());
    throw;
  }
}

}  // namespace

Subject reference_subject() {
  using enum Ability;
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.drop({many_ranks, counts_traffic, messages, tiles});
  can.add({backward, threads, foreign});
  can.modifiers = kAllModifiers;
  return {.name = "reference",
          .title = "the exact reference: float64, compensated, rounded once",
          .can = can,
          .run = run_exactly,
          // The promise of the reference itself is far below this one: sums in the carried type.
          .profile = [](const Problem& problem, const RunOptions&) {
            return carried_profile(problem.dtype, 1);
          }};
}

}  // namespace ringlab::verify
