// Elements of an input further apart than 31 or 32 bits can count.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/structure/sparse_memory.h"
#include "property_tests/laws/structure/structure.h"

namespace ringlab::verify {
namespace {

/// A copy of a tensor over so many addresses that most of them have no memory.
struct FarTensor {
  std::unique_ptr<SparseMemory> memory;
  TensorView<const double> view;
};

/// A dimension: its extent and its stride.
struct Dimension {
  std::int64_t Extents::*extent;
  std::int64_t Strides::*stride;
};
constexpr Dimension kDimensions[] = {{&Extents::batch, &Strides::batch},
                                     {&Extents::heads, &Strides::head},
                                     {&Extents::tokens, &Strides::token},
                                     {&Extents::channels, &Strides::channel}};

/// A random dimension with more than one element; the tensor has one.
Dimension far_dimension(const Extents& e, Draws& draws) {
  std::vector<Dimension> several;
  for (const Dimension& dimension : kDimensions) {
    if (e.*dimension.extent > 1) several.push_back(dimension);
  }
  return several[static_cast<std::size_t>(draws.below(std::ssize(several)))];
}

/// Places the last element of one dimension 2^31 or 2^32 elements or a few more from the first,
/// either way; the other dimensions are dense.
FarTensor far_apart(const Tensor<double>& tensor, Draws& draws) {
  Extents e = tensor.extents();
  const Dimension far = far_dimension(e, draws);
  const std::int64_t steps = e.*far.extent - 1;
  const std::int64_t reach = std::int64_t{1} << (draws.chance(50) ? 31 : 32);
  const std::int64_t stride = reach / steps + 1 + draws.below(9);
  e.*far.extent = 1;
  Strides strides = dense_strides(e);
  const bool is_backwards = draws.chance(30);
  strides.*far.stride = is_backwards ? -stride : stride;
  const std::int64_t start = is_backwards ? steps * stride : 0;
  FarTensor result{std::make_unique<SparseMemory>(steps * stride + e.size()),
                   {nullptr, tensor.extents(), strides}};
  for_each_index(tensor.extents(), [&](auto b, auto h, auto t, auto c) {
    result.memory->touch(start + result.view.offset(b, h, t, c)) = tensor(b, h, t, c);
  });
  result.view.data = &result.memory->touch(start);
  return result;
}

struct Moved {
  const char* name;
  const Tensor<double>& tensor;
  TensorView<const double>& view;
};

/// Places all inputs far apart, or one of them alone.
LawResult far_strides_do_not_matter(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const bool differentiates = c.seed % 2 == 0 && subject.can.has(Ability::backward);
  AttentionInput input = differentiates ? trial.input() : trial.base.input();
  const AttentionInput dense = input;
  const AttentionTensors& data = trial.base.data;
  std::vector<Moved> inputs = {
      {"q", data.q, input.q}, {"k", data.k, input.k}, {"v", data.v, input.v}};
  if (differentiates) inputs.push_back({"dout", trial.dout, *input.dout});
  Draws draws(c.seed);
  const auto chosen = static_cast<std::size_t>(draws.below(std::ssize(inputs) + 1));
  std::vector<FarTensor> far;
  std::string names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (chosen != i && chosen != inputs.size()) continue;
    far.push_back(far_apart(inputs[i].tensor, draws));
    inputs[i].view = far.back().view;
    names += (names.empty() ? "" : ", ") + std::string(inputs[i].name);
  }
  const std::string what = names + " with elements 2^31 from one another";
  const RunOptions& options = trial.base.options;
  const RunResult want = run_checked(subject, dense, options);
  const RunResult got = run_checked(subject, input, options);
  LawResult result =
      same_rows(what, got.output, want.output, {}, allowed_between_runs(subject, trial.base));
  if (!differentiates || result.outcome != Outcome::held) return result;
  return same_gradient_bits(what, got.gradients.value(), want.gradients.value(),
                            allowed_between_runs(subject, trial));
}

/// The case with two tokens at least in every tensor.
Case several_tokens(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(2, c.shape.q_tokens);
  c.shape.kv_tokens = std::max<std::int64_t>(2, c.shape.kv_tokens);
  return with_tokens(c);
}

}  // namespace

std::vector<Law> far_memory_laws() {
  return {{.id = "far_strides",
           .name = "elements_may_be_further_apart_than_32_bits_count",
           .statement = "q, k, v and dout whose elements lie 2^31 and more from one another, on "
                        "pages with nothing between, give the same bits, in both passes.",
           .exact = true,
           .or_within_bounds = true,
           .shape_case = several_tokens,
           .needs = {Ability::strided_inputs},
           .check = far_strides_do_not_matter,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
