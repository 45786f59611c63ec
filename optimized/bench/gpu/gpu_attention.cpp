#include "optimized/bench/gpu/gpu_attention.h"

#include <numbers>

#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/streams/device_kernels.h"

namespace ringlab::bench {
namespace {

using Element = BFloat16;

cuda::DeviceTensor<Element> normal_tensor(int device, std::int64_t count, std::uint32_t seed) {
  cuda::DeviceTensor<Element> tensor(device, count);
  fill_normal(tensor.data(), count, seed, nullptr);
  return tensor;
}

template <class T>
void clear(const cuda::DeviceTensor<T>& tensor, cuda::Stream stream) {
  cuda::fill_zeros(tensor.device(), reinterpret_cast<std::byte*>(tensor.data()), tensor.bytes(),
                   stream);
}

}  // namespace

Problem problem_of(const GpuCase& one) {
  return {.shape = {.batch = 1,
                    .q_heads = one.q_heads,
                    .kv_heads = one.kv_heads,
                    .q_tokens = one.tokens,
                    .kv_tokens = one.tokens,
                    .head_dim = one.head_dim,
                    .v_dim = one.head_dim},
          .dtype = DType::bf16,
          .scale = default_scale(one.head_dim),
          .mask = parse_mask(one.mask).bind(one.tokens, one.tokens)};
}

std::string kernel_name(const GpuCase& one, const RunOptions& options) {
  const ring::KernelChoice choice = ring::choose_kernels(problem_of(one), options, 1);
  const bool is_hopper = one.pass == Pass::backward ? choice.is_backward_hopper
                                                    : choice.forward == ring::ForwardKernel::hopper;
  return is_hopper ? "Hopper" : "portable";
}

GpuAttention::GpuAttention(int device, const GpuCase& one)
    : GpuAttention(
          device, one,
          ring::device_kernels<Element>(ring::choose_kernels(problem_of(one), {}, 1).forward,
                                        problem_of(one).shape)) {}

GpuAttention::GpuAttention(int device, const GpuCase& one,
                           const ring::DeviceKernels<Element>& kernels)
    : device_(device), case_(one), problem_(problem_of(one)), kernels_(kernels) {
  const std::int64_t q = rows() * one.head_dim, kv = one.kv_heads * one.tokens * one.head_dim;
  q_ = normal_tensor(device, q, 1);
  k_ = normal_tensor(device, kv, 2);
  v_ = normal_tensor(device, kv, 3);
  out_ = {device, q};
  lse_ = {device, rows()};
  states_ = {device, rows()};
  accs_ = {device, q};
  make_mask();
  if (one.pass == Pass::backward) make_gradients();
  cuda::wait_for_device(device);
}

void GpuAttention::make_mask() {
  const Positions all = Positions::all(case_.tokens);
  host_rows_ = cuda::visible_rows(problem_.mask, all, all);
  mask_rows_ = {device_, host_rows_};
  forward_tiles_ = {device_, cuda::visible_to_tiles(host_rows_, kernels_.forward_tile_queries)};
  backward_tiles_ = {device_, cuda::visible_to_tiles(host_rows_, kernels_.backward_tile_queries)};
}

void GpuAttention::make_gradients() {
  dout_ = normal_tensor(device_, q_.size(), 4);
  delta_ = {device_, rows()};
  dq_ = {device_, q_.size()};
  dk_ = {device_, k_.size()};
  dv_ = {device_, v_.size()};
  dq_sum_ = {device_, q_.size()};
  dk_sum_ = {device_, k_.size()};
  dv_sum_ = {device_, v_.size()};
  kernels_.forward(forward_call(), nullptr);
  gives_results_ = kernels_.gives_results && kernels_.gives_results(backward_call());
}

cuda::BlockShape GpuAttention::shape() const {
  const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  return {.q_heads = narrow(case_.q_heads),
          .kv_heads = narrow(case_.kv_heads),
          .queries = narrow(case_.tokens),
          .keys = narrow(case_.tokens),
          .head_dim = narrow(case_.head_dim),
          .v_dim = narrow(case_.head_dim)};
}

cuda::ForwardCall<Element> GpuAttention::forward_call() const {
  return {.shape = shape(),
          .q = q_.data(),
          .k = k_.data(),
          .v = v_.data(),
          .mask = {.rows = mask_rows_.data(),
                   .tiles = forward_tiles_.data(),
                   .hides_nothing = case_.mask == "full",
                   .host_rows = host_rows_.data()},
          .scale = static_cast<float>(problem_.scale * std::numbers::log2e),
          .running = {.states = states_.data(), .accs = accs_.data()},
          .out = out_.data(),
          .lse = lse_.data()};
}

cuda::BackwardCall<Element> GpuAttention::backward_call() const {
  return {.shape = shape(),
          .q = q_.data(),
          .k = k_.data(),
          .v = v_.data(),
          .dout = dout_.data(),
          .lse = lse_.data(),
          .delta = delta_.data(),
          .mask = {.rows = mask_rows_.data(),
                   .tiles = backward_tiles_.data(),
                   .hides_nothing = case_.mask == "full",
                   .host_rows = host_rows_.data()},
          .scale = static_cast<float>(problem_.scale * std::numbers::log2e),
          .dq = dq_sum_.data(),
          .dk = dk_sum_.data(),
          .dv = dv_sum_.data(),
          .out = out_.data(),
          .results = {.dq = dq_.data(), .dk = dk_.data(), .dv = dv_.data()}};
}

void GpuAttention::issue(cuda::Stream stream) const {
  cuda::select_device(device_);
  if (case_.pass == Pass::backward) return issue_backward(stream);
  kernels_.forward(forward_call(), stream);
}

template <class T>
Tensor<T> GpuAttention::last_heads(const cuda::DeviceTensor<T>& tensor, std::int64_t heads,
                                   std::int64_t channels) const {
  Tensor<T> read({1, heads, case_.tokens, channels});
  tensor.read(tensor.size() - read.size(), read.values());
  return read;
}

GpuSample GpuAttention::sample() const {
  const bool has_gradients = case_.pass == Pass::backward;
  const std::int64_t queries = has_gradients ? case_.q_heads / case_.kv_heads : 1;
  const std::int64_t channels = case_.head_dim;
  GpuSample sample;
  sample.problem = problem_;
  sample.problem.shape.q_heads = queries;
  sample.problem.shape.kv_heads = 1;
  sample.q = last_heads(q_, queries, channels);
  sample.k = last_heads(k_, 1, channels);
  sample.v = last_heads(v_, 1, channels);
  sample.out = last_heads(out_, queries, channels);
  sample.lse = last_heads(lse_, queries, 1);
  if (!has_gradients) return sample;
  sample.dout = last_heads(dout_, queries, channels);
  sample.dq = last_heads(dq_, queries, channels);
  sample.dk = last_heads(dk_, 1, channels);
  sample.dv = last_heads(dv_, 1, channels);
  return sample;
}

void GpuAttention::issue_backward(cuda::Stream stream) const {
  const cuda::BackwardCall<Element> call = backward_call();
  if (gives_results_) return kernels_.backward(call, stream);
  issue_with_sums(call, stream);
}

void GpuAttention::issue_with_sums(const cuda::BackwardCall<Element>& call,
                                   cuda::Stream stream) const {
  const auto channels = static_cast<std::int32_t>(case_.head_dim);
  const float scale = kernels_.sums_are_scaled ? 1 : static_cast<float>(problem_.scale);
  if (kernels_.delta_rows) {
    kernels_.delta_rows({.rows = rows(),
                         .channels = channels,
                         .out = out_.data(),
                         .dout = dout_.data(),
                         .delta = delta_.data()},
                        stream);
  }
  for (const auto* sum : {&dq_sum_, &dk_sum_, &dv_sum_}) clear(*sum, stream);
  kernels_.backward(call, stream);
  kernels_.scale_to({.count = dq_.size(), .from = dq_sum_.data(), .scale = scale, .to = dq_.data()},
                    stream);
  kernels_.scale_to({.count = dk_.size(), .from = dk_sum_.data(), .scale = scale, .to = dk_.data()},
                    stream);
  kernels_.scale_to({.count = dv_.size(), .from = dv_sum_.data(), .scale = 1, .to = dv_.data()},
                    stream);
}

}  // namespace ringlab::bench
