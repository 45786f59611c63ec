// A rank of a streamed ring that computes with the tile program, its state on the device.
#pragma once

#include <vector>

#include "optimized/cuda/device.h"
#include "stages/06_causal_ring/causal_ring.h"
#include "stages/08_overlapped_ring/streamed_ring.h"
#include "stages/common/mask_rows.h"
#include "stages/common/ring_tokens.h"
#include "stages/common/stream_kernel.h"
#include "stages/common/stream_rows.h"

namespace ringlab::stages {

template <class Element>
class StreamedTiles {
 public:
  using Real = Accumulator<Element>;
  using Kernel = causal_ring::Kernel<Element>;

  StreamedTiles(RankProblem<Element>& r, int device, RingTokens tokens, StreamKernel<Kernel> kernel,
                StreamRows<Element> rows)
      : r_(&r),
        tokens_(std::move(tokens)),
        kernel_(kernel),
        rows_(rows),
        q_(device, span_of(array_of(r.q))),
        states_(device, r.lse.extents.size()),
        accs_(device, r.out.extents.size()),
        out_(device, r.out.extents.size()),
        lse_(device, r.lse.extents.size()) {
    launch_ = {.blocks = kernel_shape(r, 0).blocks(r.options.tile_queries),
               .threads = static_cast<int>(r.options.tile_queries),
               .rank = r.rank()};
    copy_positions(device);
    copy_mask(device);
    scratch_ = {device, launch_.memory.scratch};
    launch_.scratch = scratch_.data();
    r.memory.add(visible_.bytes() + bits_.bytes() + positions_.bytes() + states_.bytes() +
                 accs_.bytes() + scratch_.bytes());
  }

  /// The running state of rows that have seen no key.
  void begin(ringlab::cuda::Stream stream) { rows_.clear(all_rows(), stream); }

  /// The running state takes in the chunk, when the stream comes to it.
  void attend(int step, const DeviceChunk<Element>& chunk, ringlab::cuda::Stream stream) {
    if (tokens_.skips(chunk.owner)) return;
    launch_.stream = stream;
    if (launch_.blocks > 0) kernel_.launch(kernel_for(chunk), launch_);
    r_->work.visit(chunk.owner, step,
                   r_->problem.mask.count(tokens_.queries(), tokens_.keys(chunk.owner)));
  }

  /// Results from the running state.
  void finish(ringlab::cuda::Stream stream) { rows_.finish(all_rows(), stream); }

  void read_back() {
    out_.read(0, span_of(array_of(r_->out)));
    lse_.read(0, span_of(array_of(r_->lse)));
  }

 private:
  template <class T>
  static std::span<T> span_of(Array<T> array) {
    return {array.data, static_cast<std::size_t>(array.size)};
  }
  template <class T>
  static Array<T> on_device(const ringlab::cuda::DeviceTensor<std::remove_const_t<T>>& tensor) {
    return {tensor.data(), tensor.size()};
  }

  DeviceRows<Element> all_rows() const {
    return {.rank = r_->rank(),
            .device = states_.device(),
            .rows = states_.size(),
            .v_dim = r_->problem.shape.v_dim,
            .states = states_.data(),
            .accs = accs_.data(),
            .out = out_.data(),
            .lse = lse_.data()};
  }

  void copy_positions(int device) {
    std::vector<std::int64_t> positions;
    for (int owner = 0; owner < tokens_.owners(); ++owner) {
      first_key_.push_back(static_cast<std::int64_t>(positions.size()));
      std::ranges::copy(tokens_.keys(owner).to_list(), std::back_inserter(positions));
    }
    positions_ = {device, std::span<const std::int64_t>(positions)};
  }
  /// Asks for the memory of a launch too, as long as the host has the mask.
  void copy_mask(int device) {
    const MaskTable table(r_->problem.mask, tokens_.queries(), r_->memory);
    const MeteredBuffer<std::int64_t> no_keys(r_->memory, 0);
    const MaskRows rows = table.rows(no_keys);
    visible_ = {device, span_of(rows.visible)};
    bits_ = {device, span_of(rows.bits)};
    kv_tokens_ = rows.kv_tokens;
    if (launch_.blocks == 0) return;
    ringlab::cuda::select_device(device);
    Kernel on_host{};
    on_host.shape = kernel_shape(*r_, 0);
    on_host.tile_keys = r_->options.tile_keys;
    on_host.mask = {rows};
    launch_.memory = kernel_.memory_of(on_host, launch_);
  }

  Kernel kernel_for(const DeviceChunk<Element>& chunk) const {
    const std::int64_t keys = tokens_.keys(chunk.owner).size();
    const KernelShape shape = kernel_shape(*r_, keys);
    const auto owner = static_cast<std::size_t>(chunk.owner);
    const std::int64_t rows = r_->problem.shape.batch * r_->problem.shape.kv_heads * keys;
    return {.shape = shape,
            .tile_keys = r_->options.tile_keys,
            .part = {0, keys},
            .mask = {{.visible = on_device<const KeyInterval>(visible_),
                      .key_positions = {positions_.data() + first_key_[owner], keys},
                      .bits = on_device<const std::uint8_t>(bits_),
                      .kv_tokens = kv_tokens_},
                     tokens_.sees_all(chunk.owner)},
            .q = on_device<const Element>(q_),
            .k = {chunk.k, rows * shape.head_dim},
            .v = {chunk.v, rows * shape.v_dim},
            .states = on_device<SoftmaxState<Real>>(states_),
            .accs = on_device<Real>(accs_)};
  }

  RankProblem<Element>* r_;
  RingTokens tokens_;
  StreamKernel<Kernel> kernel_;
  StreamRows<Element> rows_;
  ringlab::cuda::DeviceTensor<Element> q_;
  ringlab::cuda::DeviceTensor<SoftmaxState<Real>> states_;
  ringlab::cuda::DeviceTensor<Real> accs_;
  ringlab::cuda::DeviceTensor<Element> out_;
  ringlab::cuda::DeviceTensor<Real> lse_;
  ringlab::cuda::DeviceTensor<KeyInterval> visible_;
  ringlab::cuda::DeviceTensor<std::uint8_t> bits_;
  ringlab::cuda::DeviceTensor<std::int64_t> positions_;  // of all keys, owner after owner
  std::vector<std::int64_t> first_key_;                  // by owner: where its positions begin
  std::int64_t kv_tokens_ = 0;
  ringlab::cuda::DeviceTensor<std::byte> scratch_;
  StreamLaunch launch_;
};

}  // namespace ringlab::stages
