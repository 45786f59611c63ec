// A rank of a streamed ring that computes with the kernels for tensor cores of optimized/cuda.
#pragma once

#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/streams/cuda_streams.h"
#include "stages/08_overlapped_ring/streamed_ring.h"
#include "stages/common/ring_tokens.h"

namespace ringlab::stages {

/// The running state stays on the device. Half and BFloat16; masks are intervals of a chunk's rows.
template <class Element>
class StreamedFast {
 public:
  StreamedFast(RankProblem<Element>& r, int device, RingTokens tokens,
               const ringlab::ring::DeviceKernels<Element>& kernels)
      : r_(&r),
        tokens_(std::move(tokens)),
        kernels_(&kernels),
        q_(device, {r.q.data, static_cast<std::size_t>(r.q.extents.size())}),
        out_(device, r.out.extents.size()),
        lse_(device, r.lse.extents.size()),
        states_(device, r.lse.extents.size()),
        accs_(device, r.out.extents.size()),
        masks_(static_cast<std::size_t>(tokens_.owners())) {
    std::int64_t bytes = states_.bytes() + accs_.bytes();
    for (int owner = 0; owner < tokens_.owners(); ++owner) {
      if (skips(owner)) continue;
      ++left_;
      bytes += copy_mask(device, owner);
    }
    r.memory.add(bytes);
  }

  /// The first launch begins the running state, and the last one writes the results.
  void begin(ringlab::cuda::Stream) {}
  void finish(ringlab::cuda::Stream) {}

  // [streams: attend]
  /// The running state takes in the chunk, when the stream comes to it.
  void attend(int step, const DeviceChunk<Element>& chunk, ringlab::cuda::Stream stream) {
    if (skips(chunk.owner)) return;
    ringlab::cuda::ForwardCall<Element> call = call_for(chunk);
    call.begins = !has_begun_;
    call.finishes = --left_ == 0;
    has_begun_ = true;
    kernels_->forward(call, stream);
    r_->work.visit(chunk.owner, step,
                   r_->problem.mask.count(tokens_.queries(), tokens_.keys(chunk.owner)));
  }
  // end [streams: attend]

  /// A rank that saw nothing has results all the same.
  void read_back() {
    const std::span out(r_->out.data, static_cast<std::size_t>(r_->out.extents.size()));
    const std::span lse(r_->lse.data, static_cast<std::size_t>(r_->lse.extents.size()));
    if (has_begun_) {
      out_.read(0, out);
      lse_.read(0, lse);
      return;
    }
    std::ranges::fill(out, static_cast<Element>(0.0f));
    std::ranges::fill(lse, -std::numeric_limits<float>::infinity());
  }

 private:
  /// Keys of a chunk that the queries see, row by row and tile by tile.
  struct ChunkMask {
    std::vector<ringlab::cuda::KeyRange> host_rows;
    ringlab::cuda::DeviceTensor<ringlab::cuda::KeyRange> rows;
    ringlab::cuda::DeviceTensor<ringlab::cuda::TileKeys> tiles;
    bool hides_nothing = false;
  };

  bool skips(int owner) const {
    return tokens_.skips(owner) || tokens_.queries().empty() || tokens_.keys(owner).empty();
  }

  /// Copies the mask of `owner`'s chunk to the device; returns its bytes there.
  std::int64_t copy_mask(int device, int owner) {
    ChunkMask& mask = masks_[static_cast<std::size_t>(owner)];
    const Positions& keys = tokens_.keys(owner);
    mask.host_rows = ringlab::cuda::visible_rows(r_->problem.mask, tokens_.queries(), keys);
    mask.hides_nothing = ringlab::cuda::sees_all(mask.host_rows, keys.size());
    const auto tiles =
        ringlab::cuda::visible_to_tiles(mask.host_rows, kernels_->forward_tile_queries);
    mask.rows = {device, std::span<const ringlab::cuda::KeyRange>(mask.host_rows)};
    mask.tiles = {device, std::span<const ringlab::cuda::TileKeys>(tiles)};
    return mask.rows.bytes() + mask.tiles.bytes();
  }

  ringlab::cuda::ForwardCall<Element> call_for(const DeviceChunk<Element>& chunk) const {
    const Shape& s = r_->problem.shape;
    const ChunkMask& mask = masks_[static_cast<std::size_t>(chunk.owner)];
    const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    return {.shape = {.batch = narrow(s.batch),
                      .q_heads = narrow(s.q_heads),
                      .kv_heads = narrow(s.kv_heads),
                      .queries = narrow(tokens_.queries().size()),
                      .keys = narrow(tokens_.keys(chunk.owner).size()),
                      .head_dim = narrow(s.head_dim),
                      .v_dim = narrow(s.v_dim)},
            .q = q_.data(),
            .k = chunk.k,
            .v = chunk.v,
            .mask = {.rows = mask.rows.data(),
                     .tiles = mask.tiles.data(),
                     .hides_nothing = mask.hides_nothing,
                     .host_rows = mask.host_rows.data()},
            .scale = static_cast<float>(r_->problem.scale * std::numbers::log2e),
            .running = {.states = states_.data(), .accs = accs_.data()},
            .out = out_.data(),
            .lse = lse_.data()};
  }

  RankProblem<Element>* r_;
  RingTokens tokens_;
  const ringlab::ring::DeviceKernels<Element>* kernels_;
  ringlab::cuda::DeviceTensor<Element> q_, out_;
  ringlab::cuda::DeviceTensor<float> lse_;
  ringlab::cuda::DeviceTensor<SoftmaxState<float>> states_;
  ringlab::cuda::DeviceTensor<float> accs_;
  std::vector<ChunkMask> masks_;  // by owner; empty for chunks that are skipped
  int left_ = 0;                  // chunks that are still to be computed on
  bool has_begun_ = false;
};

}  // namespace ringlab::stages
