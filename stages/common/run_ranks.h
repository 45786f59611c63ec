// Runs a rank body on P in-process ranks: shard, run, gather, with everything measured.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reference/core/error.h"
#include "stages/common/rank_problem.h"

namespace ringlab::stages {

template <class Element>
using AttentionBody = std::function<void(RankProblem<Element>&)>;

/// Runs `body` on every rank of `options.ranks`. Outputs start as NaN, so a row that nobody writes
/// is seen. Input error when problem, tensors or layouts do not fit together; usage error for ranks
/// or tiles out of range; environment error when the device is missing or a rank failed. `stage`:
/// for error messages.
template <class Element>
RunResult run_ranks_of(const AttentionInput& input, const RunOptions& options,
                       const AttentionBody<Element>& body, std::string_view stage);

/// The body of a run of all ranks, which counts in `moved` what each of them sends and receives.
template <class Element>
using TogetherBody =
    std::function<void(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved)>;

/// As run_ranks_of(), but `body` is called once, by this thread, for all ranks: they are devices or
/// shares of one, and what travels are copies between them. RankProblem::network knows the rank's
/// number and takes no messages.
template <class Element>
RunResult run_together_of(const AttentionInput& input, const RunOptions& options,
                          const TogetherBody<Element>& body);

/// `run(Element{})` for the one of `Elements` that `dtype` names; usage error for another one.
template <class... Elements, class Run>
RunResult run_for_dtype(DType dtype, Run run) {
  RunResult result;
  const auto run_if = [&]<class Element>(Element element) {
    if (dtype_of<Element> != dtype) return false;
    result = run(element);
    return true;
  };
  if ((run_if(Elements{}) || ...)) return result;
  throw_usage_error({.where = "dtype",
                     .expected = "a type this subject is compiled for",
                     .actual = std::string(dtype_info(dtype).name)});
}

/// run_ranks_of() for a generic body, `[]<class E>(RankProblem<E>& r) { … }`. Compiled for the
/// Elements named, run_ranks<float>(…), or for all four input types; others are usage errors then.
template <class... Elements, class Body>
RunResult run_ranks(const AttentionInput& input, const RunOptions& options, Body body,
                    std::string_view stage = "under test") {
  if constexpr (sizeof...(Elements) == 0) {
    return run_ranks<double, float, Half, BFloat16>(input, options, body, stage);
  } else {
    return run_for_dtype<Elements...>(input.problem.dtype, [&]<class Element>(Element) {
      return run_ranks_of<Element>(input, options, body, stage);
    });
  }
}

/// run_together_of() for a generic body and all four input types.
template <class Body>
RunResult run_together(const AttentionInput& input, const RunOptions& options, Body body) {
  return run_for_dtype<double, float, Half, BFloat16>(
      input.problem.dtype,
      [&]<class Element>(Element) { return run_together_of<Element>(input, options, body); });
}

}  // namespace ringlab::stages
