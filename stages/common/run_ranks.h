// Runs a rank body on P in-process ranks: shard, run, gather, with everything measured.
#pragma once

#include <functional>
#include <string>

#include "reference/core/error.h"
#include "stages/common/rank_problem.h"

namespace ringlab::stages {

template <class Element>
using AttentionBody = std::function<void(RankProblem<Element>&)>;

/// Runs `body` on every rank of `options.ranks`. Outputs start as NaN, so a row that nobody writes
/// is seen. Input error when problem, tensors or layouts do not fit together; usage error for ranks
/// or tiles out of range; environment error when the device is missing or a rank failed.
template <class Element>
RunResult run_ranks_of(const AttentionInput& input, const RunOptions& options,
                       const AttentionBody<Element>& body);

/// The same for a generic body, `[]<class E>(RankProblem<E>& r) { … }`. Compiled for the Elements
/// named, run_ranks<float>(…), or for all four input types; others are usage errors then.
template <class... Elements, class Body>
RunResult run_ranks(const AttentionInput& input, const RunOptions& options, Body body) {
  if constexpr (sizeof...(Elements) == 0) {
    return run_ranks<double, float, Half, BFloat16>(input, options, body);
  } else {
    RunResult result;
    const auto run_if = [&]<class Element>(Element) {
      if (dtype_of<Element> != input.problem.dtype) return false;
      result = run_ranks_of<Element>(input, options, body);
      return true;
    };
    if ((run_if(Elements{}) || ...)) return result;
    throw_usage_error({.where = "dtype",
                       .expected = "a type this subject is compiled for",
                       .actual = std::string(dtype_info(input.problem.dtype).name),
                       .hint = ""});
  }
}

}  // namespace ringlab::stages
