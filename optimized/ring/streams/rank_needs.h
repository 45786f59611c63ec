// Needs of the kernels of one rank besides its tensors, known before any of them is allocated. No
// CUDA header is seen here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <vector>

#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/streams/cuda_streams.h"
#include "optimized/ring/streams/stream_setting.h"

namespace ringlab::ring {

/// Sizes of the block of a rank's queries and the chunk of `owner`.
inline cuda::BlockShape block_shape(const StreamSetting& setting, int rank, int owner) {
  const auto narrow = [](std::int64_t count) { return static_cast<std::int32_t>(count); };
  const Shape& s = setting.problem.shape;
  return {.batch = narrow(s.batch),
          .q_heads = narrow(s.q_heads),
          .kv_heads = narrow(s.kv_heads),
          .queries = narrow(setting.queries.positions(rank).size()),
          .keys = narrow(setting.keys.positions(owner).size()),
          .head_dim = narrow(s.head_dim),
          .v_dim = narrow(s.v_dim)};
}

/// ForwardCall::scale.
inline float block_scale(const Problem& problem) {
  return static_cast<float>(problem.scale * std::numbers::log2e);
}

struct RankNeeds {
  std::int64_t scratch_bytes = 0;  ///< of the kernels' own, on the compute stream
  bool state = true;               ///< the running state of the forward pass is used
  bool sums = true;                ///< so are the sums of gradients, in f32
};

/// Asks the kernels, on the current device, about every block that the rank attends to.
template <class Element>
class RankNeedsOf {
 public:
  RankNeedsOf(const StreamSetting& setting, const StreamPrograms& programs,
              const DeviceKernels<Element>& kernels, Repeatable gradients, int rank)
      : setting_(setting), kernels_(kernels), gradients_(gradients), rank_(rank) {
    owners_ = owners_in(programs.forward);
    for (const int owner : owners_) take_in_forward(owner);
    if (programs.backward) take_in_backward(owners_in(*programs.backward));
  }

  const RankNeeds& needs() const { return needs_; }

 private:
  using Rows = std::vector<cuda::KeyRange>;

  std::vector<int> owners_in(const StreamProgram& program) const {
    std::vector<int> owners;
    for (const StreamOperation& operation : program.operations) {
      if (operation.action != StreamAction::attend || operation.rank != rank_) continue;
      owners.push_back(operation.owner);
    }
    return owners;
  }
  Rows rows_of(int owner) const {
    return cuda::visible_rows(setting_.problem.mask, setting_.queries.positions(rank_),
                              setting_.keys.positions(owner));
  }
  void want(std::int64_t bytes) { needs_.scratch_bytes = std::max(needs_.scratch_bytes, bytes); }

  void take_in_forward(int owner) {
    const KernelNeeds<Element>& ask = kernels_.needs;
    if (!ask.forward_bytes) return;
    const Rows rows = rows_of(owner);
    const cuda::ForwardCall<Element> call{.shape = block_shape(setting_, rank_, owner),
                                          .mask = {.host_rows = rows.data()},
                                          .scale = block_scale(setting_.problem),
                                          .begins = owner == owners_.front(),
                                          .finishes = owner == owners_.back(),
                                          .running = {}};
    want(ask.forward_bytes(call));
    needs_.state = !(owners_.size() == 1 && ask.leaves_state(call));
  }

  /// Needs no sums where the pass has a single block and the kernel writes the results itself.
  void take_in_backward(const std::vector<int>& owners) {
    if (!kernels_.gives_results && !kernels_.needs.backward_bytes) return;
    for (const int owner : owners) {
      const Rows rows = rows_of(owner);
      const cuda::BackwardCall<Element> call{.shape = block_shape(setting_, rank_, owner),
                                             .mask = {.host_rows = rows.data()},
                                             .scale = block_scale(setting_.problem),
                                             .deterministic = gradients_ == Repeatable::same_bits};
      const bool alone = setting_.options.ranks == 1 && owners.size() == 1;
      needs_.sums = !(alone && kernels_.gives_results && kernels_.gives_results(call));
      const GradientsAs as = needs_.sums ? GradientsAs::sums : GradientsAs::results;
      if (kernels_.needs.backward_bytes) want(kernels_.needs.backward_bytes(call, as));
    }
  }

  const StreamSetting& setting_;
  const DeviceKernels<Element>& kernels_;
  const Repeatable gradients_;
  const int rank_;
  std::vector<int> owners_;  // of the chunks of the forward pass, in order
  RankNeeds needs_ = {};
};

}  // namespace ringlab::ring
