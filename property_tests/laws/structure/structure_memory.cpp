// Where the inputs lie in memory does not matter, and a run only reads them.
#include <cstring>
#include <limits>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// A copy of a tensor in another memory order, with NaN margins before, after and in between.
struct GuardedTensor {
  std::vector<double> memory;
  TensorView<const double> view;
};

constexpr std::int64_t kMargin = 7;

/// Strides of a random order of the dimensions, each stretched by a random gap.
Strides random_strides(const Extents& e, Draws& draws, std::int64_t& span) {
  Strides strides;
  std::pair<std::int64_t, std::int64_t*> dimensions[] = {{e.batch, &strides.batch},
                                                         {e.heads, &strides.head},
                                                         {e.tokens, &strides.token},
                                                         {e.channels, &strides.channel}};
  for (std::size_t i = 3; i > 0; --i) std::swap(dimensions[i], dimensions[draws.next() % (i + 1)]);
  span = 1 + draws.below(2);
  for (auto& [extent, stride] : dimensions) {
    *stride = span;
    span *= extent + draws.below(2);
  }
  return strides;
}

/// Offset of the first element when the chosen dimensions run backwards.
std::int64_t reverse_some(const Extents& e, Strides& strides, Draws& draws) {
  std::int64_t start = 0;
  if (draws.chance(50)) {
    start += (e.tokens - 1) * strides.token;
    strides.token = -strides.token;
  }
  if (draws.chance(50)) {
    start += (e.channels - 1) * strides.channel;
    strides.channel = -strides.channel;
  }
  return start;
}

GuardedTensor guarded(const Tensor<double>& tensor, Draws& draws) {
  const Extents& extents = tensor.extents();
  GuardedTensor result;
  std::int64_t span = 0;
  Strides strides = random_strides(extents, draws, span);
  const std::int64_t start = extents.size() == 0 ? 0 : reverse_some(extents, strides, draws);
  result.memory.assign(static_cast<std::size_t>(span + 2 * kMargin),
                       std::numeric_limits<double>::quiet_NaN());
  const TensorView<double> view{result.memory.data() + kMargin + start, extents, strides};
  for_each_index(extents,
                 [&](auto b, auto h, auto t, auto c) { view(b, h, t, c) = tensor(b, h, t, c); });
  result.view = view;
  return result;
}

struct GuardedInputs {
  GuardedTensor q, k, v;
  AttentionInput input(const Problem& problem) const { return {problem, q.view, k.view, v.view}; }
};

GuardedInputs guarded_inputs(const Trial& prepared, std::uint64_t seed) {
  Draws draws(seed);
  GuardedInputs inputs;
  inputs.q = guarded(prepared.data.q, draws);
  inputs.k = guarded(prepared.data.k, draws);
  inputs.v = guarded(prepared.data.v, draws);
  return inputs;
}

/// Holds because a view says where its numbers lie. Finds kernels that take inputs for dense.
LawResult strides_do_not_matter(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const AttentionOutput dense = subject.run(prepared.input(), prepared.options).output;
  const GuardedInputs strided = guarded_inputs(prepared, c.seed);
  const auto got = subject.run(strided.input(prepared.problem), prepared.options).output;
  return same_rows("the same values in another memory order", got, dense);
}

bool same_bytes(const GuardedTensor& a, const std::vector<double>& b) {
  return std::memcmp(a.memory.data(), b.data(), b.size() * sizeof(double)) == 0;
}

/// Finds scaling in place, and writes past the end of a row.
LawResult inputs_are_only_read(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const GuardedInputs inputs = guarded_inputs(prepared, c.seed);
  const GuardedInputs copy = inputs;
  subject.run(inputs.input(prepared.problem), prepared.options);
  if (!same_bytes(inputs.q, copy.q.memory)) return broken("the run wrote into q or beside it");
  if (!same_bytes(inputs.k, copy.k.memory)) return broken("the run wrote into k or beside it");
  if (!same_bytes(inputs.v, copy.v.memory)) return broken("the run wrote into v or beside it");
  return held();
}

Case any_case(Case c) { return c; }

std::string needs_strided_inputs(const Subject& subject) {
  return subject.can.strided_inputs ? "" : "takes dense tensors only";
}

}  // namespace

std::vector<Law> memory_laws() {
  return {
      {"P38", "strides_and_offsets_of_the_inputs_do_not_matter",
       "Inputs in any memory order, backwards, with NaN in the gaps, give the same bits.", true,
       any_case, needs_strided_inputs, strides_do_not_matter},
      {"P39",
       "inputs_and_what_lies_beside_them_are_only_read",
       "After a run, the memory of q, k, v and their margins holds the bytes it held before.",
       true,
       any_case,
       {},
       inputs_are_only_read},
  };
}

}  // namespace ringlab::verify
