// The kernels on a device, which keep the contract of block kernels with the cases of the emulated
// GPU.
#include <utility>

#include "tests/optimized/cuda/cuda_kernels.h"
#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"

namespace ringlab {
namespace cuda {
namespace {

/// A device has an order of its own.
BlockKernel on_device(BlockKernel kernel, Needs needs = Needs::hopper) {
  kernel.orders_are_drawn = false;
  kernel.begin = [needs] { return prepare_device(needs); };
  kernel.end = lost_wait;
  return kernel;
}

/// More tiles than any device has multiprocessors; the reference takes most of the time.
BlockKernel with_many_tiles(BlockKernel kernel) {
  const KernelCase c{.shape = {.batch = 2,
                               .q_heads = 36,
                               .kv_heads = 12,
                               .q_tokens = 220,
                               .kv_tokens = 220,
                               .head_dim = 64,
                               .v_dim = 64},
                     .layout = LayoutKind::zigzag,
                     .seed = 31};
  kernel.groups.push_back(masked(c, {"full", "causal"}));
  kernel.groups.back().name = "many_tiles";
  return kernel;
}

template <class Element>
void add_kernels(std::vector<BlockKernel>& all) {
  all.push_back(on_device(with_many_tiles(
      with_forward_hopper_cases(forward_hopper_kernel<Element>(&device_forward_hopper<Element>)))));
  all.push_back(on_device(
      with_backward_hopper_cases(backward_kernel<Element>(&device_backward_hopper<Element>))));
  all.push_back(on_device(with_portable_cases(portable_kernel(device_portable_kernels<Element>())),
                          Needs::any_kernel));
}

}  // namespace
}  // namespace cuda

std::vector<BlockKernel> every_block_kernel() {
  using namespace cuda;
  std::vector<BlockKernel> all;
  add_kernels<Half>(all);
  add_kernels<BFloat16>(all);
  for (const HopperVersion& version : hopper_versions()) {
    all.push_back(on_device(
        version_kernel(version, [version](const ForwardCall<BFloat16>& call, const EmulatedGrid&) {
          device_forward_hopper_version(version, call);
        })));
  }
  for (const HopperBackwardVersion& version : hopper_backward_versions()) {
    all.push_back(on_device(
        version_kernel(version, [version](const BackwardCall<BFloat16>& call, std::uint64_t) {
          device_backward_hopper_version(version, call);
        })));
    all.back().name += "_backward";
  }
  return all;
}

}  // namespace ringlab
