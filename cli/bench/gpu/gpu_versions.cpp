#include <memory>
#include <string>
#include <vector>

#include "cli/bench/gpu/gpu_attention.h"
#include "cli/bench/gpu/gpu_works.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "optimized/ring/streams/device_kernels.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

constexpr int kLadderDevice = 0;
constexpr int kHopper = 90;

void check_device() {
  const cuda::DeviceFacts facts = cuda::device_facts(kLadderDevice);
  if (facts.compute_capability == kHopper) return;
  throw_environment_error({.where = "bench gpu --ladder",
                           .expected = "a Hopper GPU, of compute capability 9.0",
                           .actual = facts.name + ", of another one",
                           .hint = "It measures versions of the Hopper kernel."});
}

bool computes(const cuda::HopperVersion& version, const GpuCase& one) {
  return version.channels == one.head_dim && (one.mask == "full" || !version.needs_everything_seen);
}

GpuWork work_of(const GpuTimer& timer, const cuda::HopperVersion& version, const GpuCase& one) {
  ring::DeviceKernels<BFloat16> kernels =
      ring::device_kernels<BFloat16>(ring::ForwardKernel::hopper, problem_of(one).shape);
  kernels.forward_tile_queries = version.tile_queries;
  kernels.forward = [version](const cuda::ForwardCall<BFloat16>& call, cuda::Stream stream) {
    cuda::forward_hopper_version(version, call, stream);
  };
  const auto attention = std::make_shared<GpuAttention>(kLadderDevice, one, kernels);
  return make_pass(timer, std::string(version.name), attention, version.exp_error);
}

}  // namespace

std::vector<GpuVersion> make_versions(const GpuTimer& timer, const GpuCase& one) {
  check_device();
  std::vector<GpuVersion> all;
  for (const cuda::HopperVersion& version : cuda::hopper_versions()) {
    if (!computes(version, one)) continue;
    all.push_back({.name = std::string(version.name),
                   .what = std::string(version.what),
                   .is_step = version.kind == cuda::HopperVersionKind::step,
                   .work = work_of(timer, version, one)});
  }
  return all;
}

}  // namespace ringlab::bench
