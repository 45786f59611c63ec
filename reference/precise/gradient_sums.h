// Gradients of a whole problem, summed up over rows in any number type of soft_row.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/core/rows/parallel_rows.h"
#include "reference/precise/soft_row.h"

namespace ringlab::precise {

template <class Number>
struct SummedGradients {
  std::vector<Number> dq, dk, dv;  ///< in the extents of q, k, v, row-major
};

/// Adds what the rows of one batch and K/V head give. Threads work on different K/V heads.
template <class Number>
class GradientWorker {
 public:
  GradientWorker(const AttentionInput& input, const TensorView<const double>& dout,
                 SummedGradients<Number>& sums)
      : input_(&input), dout_(&dout), sums_(&sums) {}

  /// `row_done` is called after each of its rows.
  template <class RowDone>
  void operator()(std::int64_t batch, std::int64_t kv_head, const RowDone& row_done) const {
    const Shape& shape = input_->problem.shape;
    const std::int64_t group = shape.q_heads / shape.kv_heads;
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
        add_row({.batch = batch, .q_head = h, .kv_head = kv_head, .query = i, .slot = i});
        row_done();
      }
    }
  }

 private:
  void add_row(const RowPlace& place) const {
    const SoftRow<Number> row = soft_row<Number>(*input_, place);
    if (row.sees_nothing()) return;
    std::vector<double> dout, q;
    read_channels(*dout_, {place.batch, place.q_head, place.query}, "do", dout);
    read_channels(input_->q, {place.batch, place.q_head, place.query}, "q", q);
    const RowSlopes<Number> slopes = slopes_of(*input_, row, dout);
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      add_pair(row, n, slopes.score[n] * Number(input_->problem.scale), q);
      Number* dv = at(sums_->dv, input_->v.extents, {place.batch, place.kv_head, row.keys[n]});
      for (std::size_t c = 0; c < dout.size(); ++c) {
        dv[c].add_product(slopes.kept_probability[n], dout[c]);
      }
    }
  }

  void add_pair(const SoftRow<Number>& row, std::size_t n, const Number& slope,
                const std::vector<double>& q) const {
    const RowPlace& place = row.place;
    const TokenAddress key{place.batch, place.kv_head, row.keys[n]};
    std::vector<double> k;
    read_channels(input_->k, key, "k", k);
    Number* dq = at(sums_->dq, input_->q.extents, {place.batch, place.q_head, place.query});
    Number* dk = at(sums_->dk, input_->k.extents, key);
    for (std::size_t c = 0; c < q.size(); ++c) {
      dq[c].add_product(slope, k[c]);
      dk[c].add_product(slope, q[c]);
    }
  }

  static Number* at(std::vector<Number>& values, const Extents& e, const TokenAddress& token) {
    const std::int64_t row = (token.batch * e.heads + token.head) * e.tokens + token.token;
    return values.data() + row * e.channels;
  }

  const AttentionInput* input_;
  const TensorView<const double>* dout_;
  SummedGradients<Number>* sums_;
};

/// make_scope() is called once on each thread and lives as long as the thread works.
template <class Number, class MakeScope, class RowDone>
SummedGradients<Number> gradient_sums(const AttentionInput& input,
                                      const TensorView<const double>& dout, int threads,
                                      const MakeScope& make_scope, const RowDone& row_done) {
  const Shape& shape = input.problem.shape;
  [[maybe_unused]] const auto scope = make_scope();
  const auto zeros = [](const Extents& extents) {
    return std::vector<Number>(static_cast<std::size_t>(extents.size()), Number(0.0));
  };
  SummedGradients<Number> sums{zeros(shape.q()), zeros(shape.k()), zeros(shape.v())};
  const GradientWorker<Number> worker(input, dout, sums);
  parallel_rows(shape.batch * shape.kv_heads, threads, [&] {
    return [&, thread_scope = make_scope()](std::int64_t head) {
      worker(head / shape.kv_heads, head % shape.kv_heads, row_done);
    };
  });
  return sums;
}

}  // namespace ringlab::precise
