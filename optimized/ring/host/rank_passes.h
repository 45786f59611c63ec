// State and work of one rank in the forward and in the backward pass.
#pragma once

#include <cmath>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/kernel_table.h"
#include "optimized/ring/ends.h"
#include "optimized/ring/host/chunks.h"
#include "optimized/ring/host/gradient_sums.h"

namespace ringlab::ring {

/// Inputs that both passes share.
template <class Element>
struct PassContext {
  const Problem& problem;
  const Layout& queries;
  const Layout& keys;
  const RankRows<Element>& rows;  ///< dense
  const cpu::KernelPair<Element>& kernels;
  cpu::TileSizes tiles;
  int threads = 1;
  int rank = 0;
  Chunks<Element>& chunks;
  const NeedMatrix& need;
  const cpu::WorkListener* work_done = nullptr;
  std::int64_t products = 0;  ///< of a pair, in this pass

  cpu::Block<Element> block(const Operation& operation) const {
    const KvChunk<Element> chunk = chunks.chunk(operation.owner, operation.slot);
    return {.mask = problem.mask,
            .queries = queries.positions(rank),
            .keys = keys.positions(operation.owner),
            .scale = problem.scale,
            .tiles = tiles,
            .q = rows.q,
            .k = chunk.k,
            .v = chunk.v,
            .threads = threads,
            .done = {.listener = work_done, .amount = work(operation.owner)},
            .modifiers = &problem.modifiers};
  }
  /// Matrix products of this rank's step on the chunk of `owner`.
  std::int64_t work(int owner) const {
    return problem.shape.batch * problem.shape.q_heads * products * need.pairs(rank, owner);
  }
  std::int64_t query_rows() const {
    return problem.shape.batch * problem.shape.q_heads * queries.positions(rank).size();
  }
};

/// The running state, from the identity to out and lse.
template <class Element>
class ForwardPass {
 public:
  using Real = Accumulator<Element>;

  ForwardPass(const PassContext<Element>& context, MemoryMeter& meter)
      : context_(context),
        states_(meter, context.query_rows()),
        accs_(meter, context.query_rows() * context.problem.shape.v_dim) {
    take_in_sinks();
  }

  TensorPair chunk_bytes(const Operation& operation) {
    return context_.chunks.bytes(operation.owner, operation.slot);
  }
  void compute(const Operation& operation) {
    context_.kernels.forward(context_.block(operation), states_.data(), accs_.data());
  }
  TensorPair gradient_bytes(const Operation&) { return {}; }
  void add_gradient(const Operation&) {}

  /// out (rows, v_dim) is rounded to the dtype; rows that see nothing get 0, and -inf or their
  /// sink. With `delta`,
  /// also delta_i = Σ_c dout_ic out_ic from the output before rounding.
  void finish(Tensor<Element>& out, Tensor<Real>& lse, Real* row_lse, Real* delta) {
    const std::int64_t channels = context_.problem.shape.v_dim;
    for (std::int64_t row = 0; row < states_.size(); ++row) {
      Real* const acc = accs_.data() + row * channels;
      const Real value = finish_state(cpu::natural_state(states_.data()[row]), acc, channels);
      lse.values()[static_cast<std::size_t>(row)] = value;
      for (std::int64_t c = 0; c < channels; ++c) {
        out.values()[static_cast<std::size_t>(row * channels + c)] = static_cast<Element>(acc[c]);
      }
      if (!delta) continue;
      row_lse[row] = value;
      const Element* const dout = context_.rows.dout->data + row * channels;
      Real sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) sum += static_cast<Real>(dout[c]) * acc[c];
      delta[row] = sum;
    }
  }

 private:
  /// A sink is the state of one key without a value: every row begins with the sink of its head,
  /// once, because a rank keeps its queries.
  void take_in_sinks() {
    const std::vector<double>& sinks = context_.problem.modifiers.sinks;
    if (sinks.empty()) return;
    const std::int64_t queries = context_.queries.positions(context_.rank).size();
    const std::int64_t heads = context_.problem.shape.q_heads;
    for (std::int64_t row = 0; row < states_.size(); ++row) {
      const auto head = static_cast<std::size_t>(row / queries % heads);
      states_.data()[row] = {static_cast<Real>(cpu::in_base_2(sinks[head])), Real(1)};
    }
  }

  const PassContext<Element>& context_;
  MeteredBuffer<SoftmaxState<Real>> states_;  // (batch, q_heads, rows)
  MeteredBuffer<Real> accs_;                  // (batch, q_heads, rows, v_dim)
};

/// The sums of gradients: dQ stays; dK and dV of every chunk are summed up on its way home.
template <class Element>
class BackwardPass {
 public:
  using Real = Accumulator<Element>;

  BackwardPass(const PassContext<Element>& context, const Real* row_lse, const Real* delta,
               MemoryMeter& meter)
      : context_(context),
        row_lse_(row_lse),
        delta_(delta),
        dq_(meter, context.query_rows() * context.problem.shape.head_dim),
        sums_(context.problem, context.keys, context.rank, meter) {}

  /// `most_tokens`: of the chunks that this rank visits.
  void prepare(const RankSchedule& schedule, std::int64_t most_tokens) {
    sums_.make_slots(schedule.gradient_slots, most_tokens,
                     context_.keys.positions(context_.rank).size());
  }

  TensorPair chunk_bytes(const Operation& operation) {
    return context_.chunks.bytes(operation.owner, operation.slot);
  }
  TensorPair gradient_bytes(const Operation& operation) {
    return sums_.bytes(operation.owner, operation.gradient);
  }
  void compute(const Operation& operation) {
    sums_.clear(operation.owner, operation.gradient);
    const GradientPair<Real> pair = sums_.at(operation.owner, operation.gradient);
    context_.kernels.backward(
        context_.block(operation),
        cpu::QueryGradients<Element>{*context_.rows.dout, row_lse_, delta_},
        cpu::BlockGradients<Element>{.dq = dq_.data(), .dk = pair.dk, .dv = pair.dv});
  }
  void add_gradient(const Operation& operation) {
    sums_.add(operation.owner, operation.gradient, operation.addend);
  }

  /// Rounds the sums to the dtype; dq and dk are scaled here.
  void finish(RankGradients<Element>& gradients) {
    const Real scale = static_cast<Real>(context_.problem.scale);
    const GradientPair<Real> home = sums_.at(context_.rank, kHome);
    copy_out(dq_.data(), scale, gradients.dq);
    copy_out(home.dk, scale, gradients.dk);
    copy_out(home.dv, Real(1), gradients.dv);
  }

 private:
  static void copy_out(const Real* from, Real factor, Tensor<Element>& to) {
    for (Element& value : to.values()) value = static_cast<Element>(factor * *from++);
  }

  const PassContext<Element>& context_;
  const Real* const row_lse_;
  const Real* const delta_;
  MeteredBuffer<Real> dq_;  // (batch, q_heads, rows, head_dim), without the scale
  GradientSums<Real> sums_;
};

}  // namespace ringlab::ring
