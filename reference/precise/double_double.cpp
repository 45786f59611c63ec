#include "reference/precise/double_double.h"

#include <limits>
#include <string>

#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/precise/ball.h"
#include "reference/precise/gradient_sums.h"

namespace ringlab {
namespace {

using precise::Ball;
using precise::RowPlace;
using precise::SoftRow;

DoubleDouble from_ball(const Ball& ball) {
  const double error = ball.radius();
  return {ball.high(), ball.low(),
          error >= 0 ? error : std::numeric_limits<double>::infinity()};  // NaN: nothing promised
}

Tensor<DoubleDouble> from_balls(const std::vector<Ball>& balls, const Extents& extents) {
  Tensor<DoubleDouble> tensor(extents);
  for (std::size_t i = 0; i < balls.size(); ++i) tensor.values()[i] = from_ball(balls[i]);
  return tensor;
}

/// The lse of a row that sees no key.
double empty_lse(const Problem& problem, std::int64_t q_head) {
  const std::vector<double>& sinks = problem.modifiers.sinks;
  return sinks.empty() ? -std::numeric_limits<double>::infinity()
                       : sinks[static_cast<std::size_t>(q_head)];
}

void store_row(const AttentionInput& input, const RowPlace& at, DoubleDoubleForward& result) {
  const SoftRow<Ball> row = precise::soft_row<Ball>(input, at);
  if (row.sees_nothing()) {
    result.lse(at.batch, at.q_head, at.slot, 0).high = empty_lse(input.problem, at.q_head);
    return;
  }
  result.lse(at.batch, at.q_head, at.slot, 0) = from_ball(precise::lse_of(row));
  const std::vector<Ball> out = precise::output_of(input, row);
  for (std::size_t c = 0; c < out.size(); ++c) {
    result.out(at.batch, at.q_head, at.slot, static_cast<std::int64_t>(c)) = from_ball(out[c]);
  }
}

}  // namespace

DoubleDoubleForward double_double_forward(const AttentionInput& input,
                                          const PreciseOptions& options) {
  precise::check_input(input);
  const Shape& shape = input.problem.shape;
  const std::vector<std::int64_t> rows = precise::wanted_rows(options.rows, shape);
  const auto per_head = static_cast<std::int64_t>(rows.size());
  const std::int64_t all = shape.batch * shape.q_heads * per_head;
  DoubleDoubleForward result{
      Tensor<DoubleDouble>({shape.batch, shape.q_heads, per_head, shape.v_dim}),
      Tensor<DoubleDouble>({shape.batch, shape.q_heads, per_head, 1})};
  const RowCounter row_done(options.progress, all);
  parallel_rows(all, options.threads, [&] {
    return [&](std::int64_t number) {
      store_row(input, precise::place_of(shape, rows, number), result);
      row_done();
    };
  });
  return result;
}

DoubleDoubleBackward double_double_backward(const AttentionInput& input,
                                            const TensorView<const double>& dout,
                                            const PreciseOptions& options) {
  precise::check_gradient_input(input, dout, options.rows);
  const Shape& shape = input.problem.shape;
  const RowCounter row_done(options.progress, shape.batch * shape.q_heads * shape.q_tokens);
  const auto sums = precise::gradient_sums<Ball>(
      input, dout, options.threads, [] { return 0; }, row_done);
  return {from_balls(sums.dq, shape.q()), from_balls(sums.dk, shape.k()),
          from_balls(sums.dv, shape.v())};
}

}  // namespace ringlab
