#include "optimized/ring/streams/device_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numbers>

#include "optimized/cuda/device.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

constexpr int kOldestCapability = 80;  // 8.0: mma.sync for bf16 and cp.async

std::int64_t most_positions(const Layout& layout) {
  std::int64_t most = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    most = std::max(most, layout.positions(rank).size());
  }
  return most;
}

/// Shape of the largest block that a rank computes.
cuda::BlockShape largest_block(const Problem& problem, const RunOptions& options) {
  const auto narrow = [](std::int64_t n) {
    return static_cast<std::int32_t>(
        // Clamps: a shape that is too large is refused elsewhere, and must not wrap here.
        std::min<std::int64_t>(n, std::numeric_limits<std::int32_t>::max()));
  };
  const Shape& s = problem.shape;
  return {.batch = narrow(s.batch),
          .q_heads = narrow(s.q_heads),
          .kv_heads = narrow(s.kv_heads),
          // Maxima over all ranks: no block of any rank is larger.
          .queries = narrow(most_positions(make_layout(options, s.q_tokens, options.q_layout))),
          .keys = narrow(most_positions(make_layout(options, s.kv_tokens, options.kv_layout))),
          .head_dim = narrow(s.head_dim),
          .v_dim = narrow(s.v_dim)};
}

void check_capability(int device, const cuda::DeviceFacts& facts) {
  if (facts.compute_capability >= kOldestCapability) return;
  throw_environment_error({.where = "device " + std::to_string(device),
                           .expected = "compute capability 8.0 or newer",
                           .actual = facts.name + " of " +
                                     std::to_string(facts.compute_capability / 10) + "." +
                                     std::to_string(facts.compute_capability % 10),
                           .hint = "Use --device cpu"});
}

bool is_backward_hopper(ForwardKernel forward, const Shape& shape) {
  return forward == ForwardKernel::hopper &&
         cuda::takes_backward_hopper(shape.head_dim, shape.v_dim);
}

/// "NVIDIA A100", or "2 x NVIDIA A100, NVIDIA H100".
std::string names_of(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (!text.empty()) text += ", ";
    if (count > 1) text += std::to_string(count) + " x ";
    text += name;
  }
  return text;
}

template <class Element>
std::function<void(const cuda::ForwardCall<Element>&, cuda::Stream)> forward_of(
    ForwardKernel forward, const cuda::ForwardGrid& grid) {
  if (forward == ForwardKernel::portable) return &cuda::forward_portable<Element>;
  return [grid](const cuda::ForwardCall<Element>& call, cuda::Stream stream) {
    cuda::forward_hopper(call, stream, grid);
  };
}

}  // namespace

std::string KernelChoice::text() const {
  if (is_backward_hopper) return "forward and backward: Hopper (wgmma)";
  if (forward == ForwardKernel::hopper) {
    return "forward: Hopper (wgmma), backward: portable (mma.sync), for more than 128 channels";
  }
  return "forward and backward: portable (mma.sync); the Hopper kernel does not take " +
         why_not_hopper;
}

KernelChoice choose_kernels_on(int device, const Problem& problem, const RunOptions& options) {
  const cuda::DeviceFacts facts = cuda::device_facts(device);
  check_capability(device, facts);
  // Kernels count scores in base 2 (decision 14).
  const auto scale = static_cast<float>(problem.scale * std::numbers::log2e);
  const std::string reason =
      cuda::why_not_hopper(largest_block(problem, options), scale, facts.compute_capability);
  const auto forward = reason.empty() ? ForwardKernel::hopper : ForwardKernel::portable;
  return {.forward = forward,
          .is_backward_hopper = is_backward_hopper(forward, problem.shape),
          .why_not_hopper = reason,
          .devices = facts.name};
}

KernelChoice choose_kernels(const Problem& problem, const RunOptions& options, int devices) {
  KernelChoice choice{.forward = ForwardKernel::hopper, .why_not_hopper = {}, .devices = {}};
  const int used = devices == 0 ? cuda::device_count() : devices;
  std::map<std::string, int> names;
  // With fewer ranks than devices the last devices are not used, and need not suit the kernels.
  for (int device = 0; device < std::min(used, options.ranks); ++device) {
    // All ranks have one kind of kernel: results of a rank must not depend on its device.
    const KernelChoice one = choose_kernels_on(device, problem, options);
    ++names[one.devices];
    if (one.forward == ForwardKernel::hopper) continue;
    choice.forward = one.forward;
    choice.why_not_hopper = one.why_not_hopper;
  }
  choice.is_backward_hopper = is_backward_hopper(choice.forward, problem.shape);
  choice.devices = names_of(names);
  return choice;
}

template <class Element>
DeviceKernels<Element> device_kernels(ForwardKernel forward, const Shape& shape,
                                      const cuda::ForwardGrid& grid) {
  const auto head_dim = static_cast<std::int32_t>(shape.head_dim);
  const auto v_dim = static_cast<std::int32_t>(shape.v_dim);
  const bool hopper = forward == ForwardKernel::hopper;
  return {.why_not = cuda::why_not_portable,
          .forward_tile_queries = hopper ? cuda::forward_hopper_tile_queries(head_dim, v_dim)
                                         : cuda::forward_portable_tile_queries(),
          .backward_tile_queries = cuda::backward_portable_tile_queries(head_dim, v_dim),
          .forward = forward_of<Element>(forward, grid),
          .backward = is_backward_hopper(forward, shape) ? &cuda::backward_hopper<Element>
                                                         : &cuda::backward_portable<Element>,
          .clear_states = &cuda::clear_states,
          .finish_rows = &cuda::finish_rows<Element>,
          .delta_rows = &cuda::delta_rows<Element>,
          .scale_to = &cuda::scale_to<Element>};
}
template DeviceKernels<Half> device_kernels(ForwardKernel, const Shape&, const cuda::ForwardGrid&);
template DeviceKernels<BFloat16> device_kernels(ForwardKernel, const Shape&,
                                                const cuda::ForwardGrid&);

}  // namespace ringlab::ring
