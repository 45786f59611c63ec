// Mistakes in the engine's use of score modifiers, around its kernels; mistakes inside kernels are
// in kernel_mistakes.toml.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/ring/engine.h"
#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {
namespace {

/// The engine with other modifiers than it was asked for.
Mutant with_tampered_modifiers(MutantInfo info, void (*tamper)(Problem&)) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run, tamper](AttentionInput input, const RunOptions& options) {
    tamper(input.problem);
    return run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// Caps before scaling: scale · cap · tanh(q·k / cap).
void cap_before_scaling(Problem& problem) {
  if (problem.scale > 0) problem.modifiers.softcap *= problem.scale;
}

/// Takes slopes by the K/V head: heads of a group then share one.
void use_slopes_of_kv_heads(Problem& problem) {
  const Shape& shape = problem.shape;
  const std::vector<double> given = problem.modifiers.alibi_slopes;
  for (std::size_t head = 0; head < given.size(); ++head) {
    const std::size_t group = static_cast<std::size_t>(shape.q_heads / shape.kv_heads);
    problem.modifiers.alibi_slopes[head] = given[head / group];
  }
}

/// Shifts the slopes by a head.
void use_slopes_of_the_next_head(Problem& problem) {
  std::vector<double>& slopes = problem.modifiers.alibi_slopes;
  if (!slopes.empty()) std::rotate(slopes.begin(), slopes.begin() + 1, slopes.end());
}

/// Takes every row's sink in again with each block.
void forward_with_a_sink_per_chunk(const cpu::Block<float>& block, SoftmaxState<float>* states,
                                   float* accs) {
  cpu::forward_block(block, states, accs);
  const std::vector<double>& sinks = block.modifiers->sinks;
  const Extents& q = block.q.extents;
  for (std::int64_t row = 0; !sinks.empty() && row < q.batch * q.heads * q.tokens; ++row) {
    const double sink = sinks[static_cast<std::size_t>(row / q.tokens % q.heads)];
    const SoftmaxState<float> once_more{static_cast<float>(cpu::in_base_2(sink)), 1};
    SoftmaxState<float> natural = cpu::natural_state(states[row]);
    const std::vector<float> nothing(static_cast<std::size_t>(block.v.extents.channels));
    merge_state(natural, accs + row * block.v.extents.channels, cpu::natural_state(once_more),
                nothing.data(), block.v.extents.channels);
    states[row] = {cpu::in_base_2(natural.row_max), natural.row_sum};
  }
}

Mutant sink_once_per_chunk() {
  MutantInfo info{"modifiers_sink_once_per_chunk", "optimized",
                  "the sink takes part in a row's softmax once for every chunk of keys",
                  "How often is the sink in the denominator, and who puts it there?", "classic"};
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [](const AttentionInput& input, const RunOptions& options) {
    ring::EngineParts parts;
    parts.kernels.of<float>().forward = forward_with_a_sink_per_chunk;
    return ring::Engine(parts).run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// Lets rows that see no key end as if there was no sink either.
Mutant sink_forgotten_in_empty_rows() {
  MutantInfo info{"modifiers_sink_forgotten_in_empty_rows", "optimized",
                  "a row that sees no key has lse = -inf although it has a sink",
                  "What is the logarithm of e^sink plus nothing?", "classic"};
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run](const AttentionInput& input, const RunOptions& options) {
    RunResult result = run(input, options);
    Tensor<double>& lse = result.output.lse;
    for_each_index(lse.extents(), [&](auto b, auto h, auto i, auto c) {
      const bool sees_nothing = input.problem.mask.interval(i).size() == 0;
      if (sees_nothing) lse(b, h, i, c) = -std::numeric_limits<double>::infinity();
    });
    return result;
  };
  return {std::move(info), std::move(subject)};
}

}  // namespace

std::vector<Mutant> modifier_mutants() {
  return {with_tampered_modifiers({"modifiers_capped_before_scaling", "optimized",
                                   "q·k is soft-capped, and scaled after that",
                                   "In which units is the cap?", "classic"},
                                  cap_before_scaling),
          with_tampered_modifiers(
              {"modifiers_slopes_of_kv_heads", "optimized", "ALiBi takes the slope of the K/V head",
               "How many slopes are there where query heads share keys?", "classic"},
              use_slopes_of_kv_heads),
          with_tampered_modifiers({"modifiers_slopes_of_another_head", "optimized",
                                   "every head has the slope of the next",
                                   "Is head 0 the steepest or the flattest?", "classic"},
                                  use_slopes_of_the_next_head),
          sink_once_per_chunk(), sink_forgotten_in_empty_rows()};
}

}  // namespace ringlab::mutants
