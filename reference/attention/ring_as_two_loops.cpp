#include <algorithm>
#include <cmath>
#include <string>

#include "reference/attention/exact.h"
#include "reference/attention/modified.h"
#include "reference/attention/visible.h"
#include "reference/core/error.h"
#include "reference/core/state.h"

namespace ringlab {
namespace {

/// Tokens begin … end-1 of the sequence: what one rank holds.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

TokenRange chunk_of(std::int64_t tokens, int ranks, int rank) {
  return {tokens * rank / ranks, tokens * (rank + 1) / ranks};
}

struct RingRow {
  std::int64_t batch, head, kv_head, query;
};

/// Running state of one query row, with its accumulator.
struct RowState {
  SoftmaxState<double> softmax;
  std::vector<double> acc;
};

class TwoLoops {
 public:
  TwoLoops(const AttentionInput& input, int ranks)
      : input_(input),
        ranks_(ranks),
        visible_(input.problem.mask, input.problem.shape.q_tokens, input.problem.shape.kv_tokens),
        modify_(input.problem),
        dropout_(input.problem.modifiers) {}

  AttentionOutput run() const {
    const Shape& shape = input_.problem.shape;
    AttentionOutput output{Tensor<double>(shape.out()), Tensor<double>(shape.lse())};
    for (int rank = 0; rank < ranks_; ++rank) {
      const TokenRange mine = chunk_of(shape.q_tokens, ranks_, rank);
      for_each_index({shape.batch, shape.q_heads, mine.end - mine.begin, 1},
                     [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t) {
                       const std::int64_t kv_head = h * shape.kv_heads / shape.q_heads;
                       run_row({b, h, kv_head, mine.begin + t}, rank, output);
                     });
    }
    return output;
  }

 private:
  /// The hops of one row: after h hops a rank holds the chunk of the rank h places behind it.
  void run_row(const RingRow& row, int rank, AttentionOutput& output) const {
    const Shape& shape = input_.problem.shape;
    RowState total{{}, std::vector<double>(static_cast<std::size_t>(shape.v_dim))};
    // The sink comes in once, before the first hop: it is nobody's key.
    if (const auto sink = modify_.sink(row.head)) total.softmax = {*sink, 1};
    for (int hop = 0; hop < ranks_; ++hop) {
      const int owner = (rank - hop + ranks_) % ranks_;
      const RowState block = attend(row, chunk_of(shape.kv_tokens, ranks_, owner));
      merge_state(total.softmax, total.acc.data(), block.softmax, block.acc.data(), shape.v_dim);
    }
    output.lse(row.batch, row.head, row.query, 0) =
        finish_state(total.softmax, total.acc.data(), shape.v_dim);
    for (std::int64_t c = 0; c < shape.v_dim; ++c) {
      output.out(row.batch, row.head, row.query, c) = total.acc[static_cast<std::size_t>(c)];
    }
  }

  double score(const RingRow& row, std::int64_t key) const {
    double sum = 0;
    for (std::int64_t c = 0; c < input_.problem.shape.head_dim; ++c) {
      sum += input_.q(row.batch, row.head, row.query, c) * input_.k(row.batch, row.kv_head, key, c);
    }
    return modify_(row.head, row.query, key, input_.problem.scale * sum, 0).value;
  }

  /// Takes one chunk into one row: its maximum first, then the weights.
  RowState attend(const RingRow& row, const TokenRange& keys) const {
    const Shape& shape = input_.problem.shape;
    RowState state{{}, std::vector<double>(static_cast<std::size_t>(shape.v_dim))};
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      if (visible_(row.query, j)) {
        state.softmax.row_max = std::max(state.softmax.row_max, score(row, j));
      }
    }
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      if (!visible_(row.query, j)) continue;
      const double weight = std::exp(score(row, j) - state.softmax.row_max);
      state.softmax.row_sum += weight;
      const double kept = weight * dropout_.factor(row.batch, row.head, row.query, j);
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        state.acc[static_cast<std::size_t>(c)] += kept * input_.v(row.batch, row.kv_head, j, c);
      }
    }
    return state;
  }

  const AttentionInput& input_;
  int ranks_;
  Visibility visible_;
  ScoreModifier modify_;
  Dropout dropout_;
};

}  // namespace

AttentionOutput ring_as_two_loops(const AttentionInput& input, int ranks) {
  check_problem(input.problem);
  if (ranks < 1) {
    throw_usage_error(
        {.where = "ranks", .expected = "at least 1", .actual = std::to_string(ranks)});
  }
  return TwoLoops(input, ranks).run();
}

}  // namespace ringlab
