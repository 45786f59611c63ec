// The door: what is checked of every run, wherever its ranks are, and tensors that are not given by
// rank or not in their own type.
#include "optimized/ring/engine.h"

#include <new>

#include "optimized/ring/checks.h"
#include "optimized/ring/whole_tensors.h"
#include "optimized/ring/wide_ends.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::ring {

template <class Element>
RunSummary Engine::run(const Problem& problem, const RunOptions& options, const Ends<Element>& ends,
                       const Place& place) const {
  check_run(problem, options);
  check_dtype(dtype_of<Element>, problem.dtype);
  place.check(problem, options);
  return place.run(CheckedRun<Element>{.problem = problem,
                                       .options = options,
                                       .ends = checked_ends(problem, ends),
                                       .parts = parts_});
}

#define RINGLAB_ENGINE_RUN_OF(Element)                                                     \
  template RunSummary Engine::run(const Problem&, const RunOptions&, const Ends<Element>&, \
                                  const Place&) const
RINGLAB_ENGINE_RUN_OF(double);
RINGLAB_ENGINE_RUN_OF(float);
RINGLAB_ENGINE_RUN_OF(Half);
RINGLAB_ENGINE_RUN_OF(BFloat16);
#undef RINGLAB_ENGINE_RUN_OF

RunResult Engine::run(const AttentionInput& input, const RunOptions& options,
                      const Place& place) const {
  try {
    RunResult result = empty_result(input);
    with_element_type(input.problem.dtype, [&]<class Element>(Element) {
      take_summary(run(input.problem, options, whole_ends<Element>(input, result), place), result);
    });
    return result;
  } catch (const std::bad_alloc&) {  // outside the ranks: theirs have become errors already
    throw MachineError({.where = "ring engine",
                        .expected = "memory for the outputs and the ranks",
                        .actual = "out of memory",
                        .hint = "Use fewer tokens, heads or ranks"});
  }
}

RunResult Engine::run(const Problem& problem, const RunOptions& options,
                      const RankRows<double>& rows, const Place& place) const {
  RunResult result;
  const Ends<double> ends{.source = [&](const RankTokens&) { return rows; },
                          .sink =
                              [&](const RankTokens&, RankResult<double>&& mine) {
                                result.output = {std::move(mine.out), std::move(mine.lse)};
                                if (!mine.gradients) return;
                                auto& [dq, dk, dv] = *mine.gradients;
                                result.gradients = {std::move(dq), std::move(dk), std::move(dv)};
                              }};
  with_element_type(problem.dtype, [&]<class Element>(Element) {
    take_summary(run(problem, options, narrow_ends<Element>(ends), place), result);
  });
  return result;
}

}  // namespace ringlab::ring
