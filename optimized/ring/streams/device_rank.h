// Memory of one rank on its device. No CUDA header is seen here.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/dense_rows.h"
#include "optimized/ring/streams/cuda_streams.h"
#include "optimized/ring/streams/rank_needs.h"

namespace ringlab::ring {

/// K and V of a chunk, or dK and dV: one piece of memory, the second behind the first.
template <class T>
struct DevicePair {
  T* first = nullptr;
  T* second = nullptr;
  std::int64_t count = 0;  ///< of both
  std::int64_t bytes() const { return count * static_cast<std::int64_t>(sizeof(T)); }
};

/// The rows of a chunk that each of the own queries sees, also by tiles of both passes.
struct DeviceMask {
  cuda::DeviceTensor<cuda::KeyRange> rows;
  cuda::DeviceTensor<cuda::TileKeys> forward_tiles, backward_tiles;
  bool hides_nothing = false;
  std::vector<cuda::KeyRange> host_rows;
};

/// The constructor allocates the memory and copies inputs into it; the destructor frees it.
template <class Element>
class DeviceRank {
 public:
  struct Given {
    const StreamSetting& setting;
    const StreamPrograms& programs;
    const DeviceKernels<Element>& kernels;
    RankNeeds needs;
    int rank = 0;
    int device = 0;
  };

  DeviceRank(const Given& given, const RankRows<Element>& rows_given) : given_(given) {
    const RankRows<Element> dense = dense_rows(rows_given);
    const int on = given.device;
    q_ = {on, values_of(dense.q)};
    own_ = {on, dense.k.extents.size() + dense.v.extents.size()};
    own_.write(0, values_of(dense.k));
    own_.write(dense.k.extents.size(), values_of(dense.v));
    out_ = {on, rows() * shape().v_dim};
    lse_ = {on, rows()};
    if (given.needs.state) {
      states_ = {on, rows()};
      accs_ = {on, rows() * shape().v_dim};
    }
    make_slots();
    make_masks();
    if (dense.dout) make_gradients(*dense.dout);
  }

  /// Allocates the kernels' scratch memory for the compute stream, on the rank's device, which is
  /// current.
  void reserve(cuda::Stream stream) const {
    if (given_.needs.scratch_bytes == 0) return;
    given_.kernels.needs.reserve(given_.needs.scratch_bytes, stream);
  }

  int rank() const { return given_.rank; }
  int device() const { return given_.device; }
  std::int64_t rows() const { return shape().batch * shape().q_heads * queries(); }
  const Shape& shape() const { return given_.setting.problem.shape; }
  /// True when gradients are summed up in f32; else the kernels write the results themselves.
  bool has_sums() const { return given_.needs.sums; }

  DevicePair<Element> chunk(int owner, int slot) const {
    Element* const data = slot == kHome ? own_.data() : slots_[at(slot)].data();
    return pair_at(data, owner);
  }
  DevicePair<float> sum(int owner, int slot) const {
    float* const data = slot == kHome ? own_sum_.data() : sums_[at(slot)].data();
    return pair_at(data, owner);
  }

  cuda::ForwardCall<Element> forward_call(const StreamOperation& operation) const {
    const DevicePair<Element> kv = chunk(operation.owner, operation.slot);
    const DeviceMask& mask = masks_.at(operation.owner);
    return {.shape = block_shape(given_.setting, rank(), operation.owner),
            .q = q_.data(),
            .k = kv.first,
            .v = kv.second,
            .mask = {.rows = mask.rows.data(),
                     .tiles = mask.forward_tiles.data(),
                     .hides_nothing = mask.hides_nothing,
                     .host_rows = mask.host_rows.data()},
            .scale = block_scale(given_.setting.problem),
            .running = running(),
            .out = out_.data(),
            .lse = lse_.data()};
  }
  cuda::BackwardCall<Element> backward_call(const StreamOperation& operation) const {
    const DevicePair<Element> kv = chunk(operation.owner, operation.slot);
    const DevicePair<float> gradients =
        has_sums() ? sum(operation.owner, operation.gradient) : DevicePair<float>{};
    const DeviceMask& mask = masks_.at(operation.owner);
    return {.shape = block_shape(given_.setting, rank(), operation.owner),
            .q = q_.data(),
            .k = kv.first,
            .v = kv.second,
            .dout = dout_.data(),
            .lse = lse_.data(),
            .delta = delta_.data(),
            .mask = {.rows = mask.rows.data(),
                     .tiles = mask.backward_tiles.data(),
                     .hides_nothing = mask.hides_nothing,
                     .host_rows = mask.host_rows.data()},
            .scale = block_scale(given_.setting.problem),
            .dq = dq_sum_.data(),
            .dk = gradients.first,
            .dv = gradients.second,
            .out = out_.data(),
            .results = has_sums() ? cuda::GradientResults<Element>{} : results()};
  }
  cuda::ClearStates clear_call() const {
    return {.rows = rows(), .channels = channels(shape().v_dim), .running = running()};
  }
  cuda::FinishRows<Element> finish_call() const {
    return {.rows = rows(),
            .channels = channels(shape().v_dim),
            .running = running(),
            .out = out_.data(),
            .lse = lse_.data()};
  }
  cuda::DeltaRows<Element> delta_call() const {
    return {.rows = rows(),
            .channels = channels(shape().v_dim),
            .out = out_.data(),
            .dout = dout_.data(),
            .delta = delta_.data()};
  }
  /// Calls that round the sums to dQ, dK and dV once; dQ and dK are scaled here, if not before.
  std::vector<cuda::ScaleTo<Element>> scale_calls() const {
    const auto factor =
        given_.kernels.sums_are_scaled ? 1 : static_cast<float>(given_.setting.problem.scale);
    const DevicePair<float> sums = sum(rank(), kHome);
    const cuda::GradientResults<Element> to = results();
    const std::int64_t keys = sums.second - sums.first;
    return {{.count = dq_.size(), .from = dq_sum_.data(), .scale = factor, .to = to.dq},
            {.count = keys, .from = sums.first, .scale = factor, .to = to.dk},
            {.count = sums.count - keys, .from = sums.second, .scale = 1, .to = to.dv}};
  }
  /// Clears the sums of gradients that begin from zero.
  void clear_sums(cuda::Stream stream) const {
    clear(dq_sum_, stream);
    clear(own_sum_, stream);
  }
  /// Fills memory that `pass` must write before it reads it with NaN of whatever type.
  void poison(Pass pass, cuda::Stream stream) const {
    for (const auto& slot : slots_) fill(slot, kNaN, stream);
    if (pass == Pass::forward) {
      fill(states_, kNaN, stream), fill(accs_, kNaN, stream);
      fill(out_, kNaN, stream), fill(lse_, kNaN, stream), fill(delta_, kNaN, stream);
      return;
    }
    for (const auto& sum : sums_) fill(sum, kNaN, stream);
    fill(own_sum_, kNaN, stream), fill(dq_sum_, kNaN, stream);
    fill(dq_, kNaN, stream), fill(dkv_, kNaN, stream);
  }

  RankResult<Element> result() const {
    RankResult<Element> result{.out = Tensor<Element>(row_extents(shape().v_dim)),
                               .lse = Tensor<float>(row_extents(1))};
    out_.read(0, result.out.values());
    lse_.read(0, result.lse.values());
    if (!given_.programs.backward) return result;
    const std::int64_t keys = tokens(rank());
    RankGradients<Element> gradients{Tensor<Element>(row_extents(shape().head_dim)),
                                     Tensor<Element>(with_tokens(shape().k(), keys)),
                                     Tensor<Element>(with_tokens(shape().v(), keys))};
    dq_.read(0, gradients.dq.values());
    dkv_.read(0, gradients.dk.values());
    dkv_.read(gradients.dk.size(), gradients.dv.values());
    result.gradients = std::move(gradients);
    return result;
  }
  /// Bytes of everything but inputs and outputs.
  std::int64_t held_bytes() const {
    std::int64_t held = states_.bytes() + accs_.bytes() + slot_bytes();
    held += given_.needs.scratch_bytes;
    held += delta_.bytes() + dq_sum_.bytes() + own_sum_.bytes();
    for (const auto& sum : sums_) held += sum.bytes();
    for (const auto& [owner, mask] : masks_) {
      held += mask.rows.bytes() + mask.forward_tiles.bytes() + mask.backward_tiles.bytes();
    }
    return held;
  }
  std::int64_t kv_bytes() const { return own_.bytes() + slot_bytes(); }

 private:
  static std::size_t at(int slot) { return static_cast<std::size_t>(slot); }
  static std::int32_t channels(std::int64_t count) { return static_cast<std::int32_t>(count); }
  static std::span<const Element> values_of(const TensorView<const Element>& dense) {
    return {dense.data, static_cast<std::size_t>(dense.extents.size())};
  }
  static constexpr std::byte kNaN{0xff};  // every byte of one
  template <class T>
  static void fill(const cuda::DeviceTensor<T>& tensor, std::byte value, cuda::Stream stream) {
    cuda::fill_bytes(tensor.device(), reinterpret_cast<std::byte*>(tensor.data()), value,
                     tensor.bytes(), stream);
  }
  template <class T>
  static void clear(const cuda::DeviceTensor<T>& tensor, cuda::Stream stream) {
    fill(tensor, std::byte{0}, stream);
  }

  std::int64_t queries() const { return given_.setting.queries.positions(rank()).size(); }
  std::int64_t tokens(int owner) const { return given_.setting.keys.positions(owner).size(); }
  cuda::GradientResults<Element> results() const {
    const DevicePair<Element> dkv = pair_at(dkv_.data(), rank());
    return {.dq = dq_.data(), .dk = dkv.first, .dv = dkv.second};
  }
  cuda::RunningState running() const { return {.states = states_.data(), .accs = accs_.data()}; }
  Extents row_extents(std::int64_t width) const {
    return {shape().batch, shape().q_heads, queries(), width};
  }
  std::int64_t per_token() const {
    return shape().batch * shape().kv_heads * (shape().head_dim + shape().v_dim);
  }
  template <class T>
  DevicePair<T> pair_at(T* data, int owner) const {
    const std::int64_t first = shape().batch * shape().kv_heads * shape().head_dim * tokens(owner);
    return {data, data + first, per_token() * tokens(owner)};
  }
  std::int64_t slot_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& slot : slots_) bytes += slot.bytes();
    return bytes;
  }

  /// Both passes use the same slots, one after the other.
  void make_slots() {
    int slots = 0;
    std::int64_t most = 0;
    const auto take_in = [&](const StreamProgram& program) {
      slots = std::max(slots, program.ranks[at(rank())].slots);
      most = std::max(most, most_tokens(program, given_.setting.keys, rank()));
    };
    take_in(given_.programs.forward);
    if (given_.programs.backward) take_in(*given_.programs.backward);
    for (int slot = 0; slot < slots; ++slot) slots_.emplace_back(device(), per_token() * most);
  }

  void make_masks() {
    for (const StreamOperation& operation : given_.programs.forward.operations) {
      if (operation.action != StreamAction::attend || operation.rank != rank()) continue;
      const auto ranges =
          cuda::visible_rows(given_.setting.problem.mask, given_.setting.queries.positions(rank()),
                             given_.setting.keys.positions(operation.owner));
      const auto tiles = [&](std::int32_t tile_queries) {
        return cuda::DeviceTensor<cuda::TileKeys>(device(),
                                                  cuda::visible_to_tiles(ranges, tile_queries));
      };
      masks_[operation.owner] = {{device(), ranges},
                                 tiles(given_.kernels.forward_tile_queries),
                                 tiles(given_.kernels.backward_tile_queries),
                                 cuda::sees_all(ranges, tokens(operation.owner)),
                                 ranges};
    }
  }

  void make_gradients(const TensorView<const Element>& dout) {
    const StreamProgram& program = *given_.programs.backward;
    const int on = device();
    dout_ = {on, values_of(dout)};
    if (given_.kernels.delta_rows) delta_ = {on, rows()};
    dq_ = {on, rows() * shape().head_dim};
    dkv_ = {on, per_token() * tokens(rank())};
    if (!has_sums()) return;
    dq_sum_ = {on, dq_.size()};
    own_sum_ = {on, dkv_.size()};
    const std::int64_t most = most_tokens(program, given_.setting.keys, rank());
    for (int slot = 0; slot < program.ranks[at(rank())].gradient_slots; ++slot) {
      sums_.emplace_back(on, per_token() * (slot < kFirstHomeSum ? most : tokens(rank())));
    }
  }

  const Given given_;
  cuda::DeviceTensor<Element> q_, dout_, out_, dq_, dkv_;
  cuda::DeviceTensor<Element> own_;  // k, v
  cuda::DeviceTensor<float> lse_, accs_, delta_, dq_sum_, own_sum_;
  cuda::DeviceTensor<SoftmaxState<float>> states_;
  std::vector<cuda::DeviceTensor<Element>> slots_;
  std::vector<cuda::DeviceTensor<float>> sums_;
  std::map<int, DeviceMask> masks_;  // by owner
};

}  // namespace ringlab::ring
