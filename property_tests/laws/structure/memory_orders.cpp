#include "property_tests/laws/structure/memory_orders.h"

#include <limits>
#include <utility>
#include <vector>

namespace ringlab::verify {
namespace {

constexpr std::int64_t kMargin = 7;

/// Strides of a random order of the dimensions, each stretched by a random gap.
Strides random_strides(const Extents& e, Draws& draws, std::int64_t& span) {
  Strides strides;
  std::vector<std::pair<std::int64_t, std::int64_t*>> dimensions = {{e.batch, &strides.batch},
                                                                    {e.heads, &strides.head},
                                                                    {e.tokens, &strides.token},
                                                                    {e.channels, &strides.channel}};
  draws.shuffle(dimensions);
  span = 1 + draws.below(2);
  for (auto& [extent, stride] : dimensions) {
    *stride = span;
    span *= extent + draws.below(2);
  }
  return strides;
}

/// Strides of rows: (batch, head, token), (batch, token, head), … with gaps behind rows, and with
/// two tensors more between the rows, heads or tokens of this one.
Strides row_strides(const Extents& e, Draws& draws, std::int64_t& span) {
  constexpr std::int64_t kVector = 8, kPacked = 3;
  Strides strides;
  std::vector<std::pair<std::int64_t, std::int64_t*>> dimensions = {
      {e.batch, &strides.batch}, {e.heads, &strides.head}, {e.tokens, &strides.token}};
  draws.shuffle(dimensions);
  strides.channel = 1;
  span = e.channels;
  const std::int64_t padding = draws.below(3);
  if (padding == 1) ++span;
  if (padding == 2) span = (span + kVector - 1) / kVector * kVector;
  for (auto& [extent, stride] : dimensions) {
    *stride = span;
    span *= draws.chance(25) ? kPacked * extent : extent;
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

/// The tensor at these strides, of which `span` elements are in use and the first is `start`.
GuardedTensor placed(const Tensor<double>& tensor, const Strides& strides, std::int64_t span,
                     std::int64_t start) {
  GuardedTensor result;
  result.memory.assign(static_cast<std::size_t>(span + 2 * kMargin),
                       std::numeric_limits<double>::quiet_NaN());
  const TensorView<double> view{result.memory.data() + kMargin + start, tensor.extents(), strides};
  for_each_index(tensor.extents(),
                 [&](auto b, auto h, auto t, auto c) { view(b, h, t, c) = tensor(b, h, t, c); });
  result.view = view;
  return result;
}

bool is_in_rows(std::uint64_t seed) {
  constexpr std::int64_t kRowStream = 38;
  return Draws(seed, {kRowStream}).chance(50);
}

}  // namespace

GuardedTensor guarded(const Tensor<double>& tensor, Draws& draws) {
  const Extents& extents = tensor.extents();
  std::int64_t span = 0;
  Strides strides = random_strides(extents, draws, span);
  const std::int64_t start = extents.size() == 0 ? 0 : reverse_some(extents, strides, draws);
  return placed(tensor, strides, span, start);
}

GuardedTensor guarded_rows(const Tensor<double>& tensor, Draws& draws) {
  std::int64_t span = 0;
  const Strides strides = row_strides(tensor.extents(), draws, span);
  return placed(tensor, strides, span, 0);
}

GuardedInputs guarded_inputs(const Trial& trial, std::uint64_t seed) {
  Draws draws(seed);
  const auto copy = is_in_rows(seed) ? guarded_rows : guarded;
  GuardedInputs inputs;
  inputs.q = copy(trial.data.q, draws);
  inputs.k = copy(trial.data.k, draws);
  inputs.v = copy(trial.data.v, draws);
  return inputs;
}

GuardedTensor guarded_tensor(const Tensor<double>& tensor, std::uint64_t seed) {
  constexpr std::int64_t kOneMore = 39;
  Draws draws(seed, {kOneMore});
  return is_in_rows(seed) ? guarded_rows(tensor, draws) : guarded(tensor, draws);
}

}  // namespace ringlab::verify
