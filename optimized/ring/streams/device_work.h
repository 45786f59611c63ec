// Computing of one rank, put on its compute stream. No CUDA header is seen here.
#pragma once

#include "optimized/cuda/stream_kernels.h"
#include "optimized/ring/streams/device_rank.h"
#include "reference/core/error.h"

namespace ringlab::ring {

/// Usage error when the kernels do not take the shape.
template <class Element>
void check_kernels(const Problem& problem, const DeviceKernels<Element>& kernels) {
  const Shape& s = problem.shape;
  const cuda::BlockShape shape{.batch = static_cast<std::int32_t>(s.batch),
                               .q_heads = static_cast<std::int32_t>(s.q_heads),
                               .kv_heads = static_cast<std::int32_t>(s.kv_heads),
                               .head_dim = static_cast<std::int32_t>(s.head_dim),
                               .v_dim = static_cast<std::int32_t>(s.v_dim)};
  const std::string reason = kernels.why_not(shape);
  if (reason.empty()) return;
  throw_usage_error({.where = "shape",
                     .expected = "one that the kernels take",
                     .actual = reason,
                     .hint = "Use --device cpu"});
}

/// The device of the rank must be the current one in every call.
template <class Element>
class DeviceWork {
 public:
  DeviceWork(const DeviceRank<Element>& rank, const StreamPrograms& programs,
             const DeviceKernels<Element>& kernels, Repeatable gradients)
      : rank_(&rank),
        kernels_(&kernels),
        gradients_(gradients),
        has_backward_(programs.backward.has_value()),
        has_sums_(rank.has_sums()) {
    for (const StreamOperation& operation : programs.forward.operations) {
      if (operation.action != StreamAction::attend || operation.rank != rank.rank()) continue;
      if (first_ == kNobody) first_ = operation.owner;
      last_ = operation.owner;
    }
  }

  void attend(Pass pass, const StreamOperation& operation, cuda::Stream stream) const {
    if (pass == Pass::forward) {
      cuda::ForwardCall<Element> call = rank_->forward_call(operation);
      call.begins = operation.owner == first_;
      call.finishes = operation.owner == last_;
      return kernels_->forward(call, stream);
    }
    if (has_sums_) {
      const DevicePair<float> sum = rank_->sum(operation.owner, operation.gradient);
      cuda::fill_zeros(rank_->device(), reinterpret_cast<std::byte*>(sum.first), sum.bytes(),
                       stream);
    }
    cuda::BackwardCall<Element> call = rank_->backward_call(operation);
    call.deterministic = gradients_ == Repeatable::same_bits;
    kernels_->backward(call, stream);
  }
  void add(const StreamOperation& operation, cuda::Stream stream) const {
    const DevicePair<float> to = rank_->sum(operation.owner, operation.gradient);
    cuda::add_values(to.first, rank_->sum(operation.owner, operation.addend).first, to.count,
                     stream);
  }

  /// Ends the forward pass; a rank that attends to nothing has results, too.
  void end_forward(cuda::Stream stream) const {
    if (rank_->rows() == 0) return;
    if (first_ == kNobody) {
      kernels_->clear_states(rank_->clear_call(), stream);
      kernels_->finish_rows(rank_->finish_call(), stream);
    }
    if (has_backward_ && kernels_->delta_rows) kernels_->delta_rows(rank_->delta_call(), stream);
  }
  void poison(Pass pass, cuda::Stream stream) const { rank_->poison(pass, stream); }
  void begin_backward(cuda::Stream stream) const {
    if (has_sums_) rank_->clear_sums(stream);
  }
  void end_backward(cuda::Stream stream) const {
    if (!has_sums_) return;
    for (const auto& call : rank_->scale_calls()) kernels_->scale_to(call, stream);
  }

 private:
  const DeviceRank<Element>* rank_;
  const DeviceKernels<Element>* kernels_;
  Repeatable gradients_;
  bool has_backward_;
  bool has_sums_;                         // else the kernels write the gradients themselves
  int first_ = kNobody, last_ = kNobody;  // owners of the chunks, forward
};

}  // namespace ringlab::ring
