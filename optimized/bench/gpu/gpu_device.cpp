// `ringlab_goals gpu` on the first CUDA device.
#include <cuda_runtime.h>

#include <array>
#include <span>
#include <utility>

#include "optimized/bench/gpu/gpu_attention.h"
#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/cuda/hopper/backward_hopper_ladder.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "optimized/ring/streams/device_kernels.h"
#include "optimized/ring/vendor/cudnn_kernels.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

constexpr int kDevice = 0;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void check(cudaError_t status, const char* call) {
  cuda::check_cuda(status, call, "ringlab_goals gpu");
}

/// One pass of attention as work timed by `timer`, which must outlive it. `exp_error` is that of
/// wrong_in().
GpuWork make_pass(const GpuTimer& timer, const std::string& kernel,
                  std::shared_ptr<const GpuAttention> attention, double exp_error = 0) {
  return {kernel,
          [&timer, attention] {
            return timer.seconds_of([&](cuda::Stream stream) { attention->issue(stream); });
          },
          [attention, exp_error] { return wrong_in(attention->sample(), exp_error); }};
}

constexpr int kHopper = 90;

void check_device() {
  const cuda::DeviceFacts facts = cuda::device_facts(kDevice);
  if (facts.compute_capability == kHopper) return;
  throw_environment_error({.where = "ringlab_goals gpu --ladder",
                           .expected = "a Hopper GPU, of compute capability 9.0",
                           .actual = facts.name + ", of another one",
                           .hint = "It measures versions of the Hopper kernel."});
}

bool computes(const cuda::HopperVersion& version, const GpuCase& one) {
  return version.channels == one.head_dim && (one.mask == "full" || !version.needs_everything_seen);
}
bool computes(const cuda::HopperBackwardVersion& version, const GpuCase& one) {
  return version.channels == one.head_dim;
}

ring::DeviceKernels<BFloat16> hopper_kernels(const GpuCase& one) {
  return ring::device_kernels<BFloat16>(ring::ForwardKernel::hopper, problem_of(one).shape);
}

GpuWork work_of(const GpuTimer& timer, const cuda::HopperVersion& version, const GpuCase& one) {
  ring::DeviceKernels<BFloat16> kernels = hopper_kernels(one);
  kernels.forward_tile_queries = version.tile_queries;
  kernels.forward = [version](const cuda::ForwardCall<BFloat16>& call, cuda::Stream stream) {
    cuda::forward_hopper_version(version, call, stream);
  };
  const auto attention = std::make_shared<GpuAttention>(kDevice, one, kernels);
  return make_pass(timer, std::string(version.name), attention, version.exp_error);
}

GpuWork work_of(const GpuTimer& timer, const cuda::HopperBackwardVersion& version,
                const GpuCase& one) {
  ring::DeviceKernels<BFloat16> kernels = hopper_kernels(one);
  kernels.backward = [version](const cuda::BackwardCall<BFloat16>& call, cuda::Stream stream) {
    cuda::backward_hopper_version(version, call, stream);
  };
  return make_pass(timer, std::string(version.name),
                   std::make_shared<GpuAttention>(kDevice, one, kernels));
}

/// Works of the versions that compute the case.
template <class Version>
std::vector<GpuVersion> works_of(const GpuTimer& timer, std::span<const Version> versions,
                                 const GpuCase& one) {
  std::vector<GpuVersion> all;
  for (const Version& version : versions) {
    if (!computes(version, one)) continue;
    all.push_back({.name = std::string(version.name),
                   .what = std::string(version.what),
                   .is_step = version.kind == cuda::HopperVersionKind::step,
                   .work = work_of(timer, version, one)});
  }
  return all;
}

class CudaGpu : public Gpu {
 public:
  explicit CudaGpu(double timeout_s) : timeout_s_(timeout_s) {}

  GpuFacts facts() override {
    cudaDeviceProp properties = {};
    check(cudaGetDeviceProperties(&properties, kDevice), "cudaGetDeviceProperties");
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return {.name = properties.name,
            .driver = version_text(driver),
            .runtime = version_text(runtime),
            .compute_capability = 10 * properties.major + properties.minor,
            .multiprocessors = properties.multiProcessorCount,
            .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
            .l2_bytes = properties.l2CacheSize};
  }

  double clock_hz() override {
    const cuda::DeviceTensor<std::int64_t> sample(kDevice, 2);
    for (int times = 0; times < 100; ++times) sample_clock(sample.data(), timer_.stream());
    cuda::wait_for_device(kDevice);
    std::array<std::int64_t, 2> passed = {};
    sample.read(0, passed);
    return 1e9 * static_cast<double>(passed[0]) / static_cast<double>(passed[1]);
  }

  GpuWork matrix_product(std::int64_t n) override { return make_matrix_product(timer_, n); }

  GpuWork attention(const GpuCase& one) override {
    const auto attention = std::make_shared<GpuAttention>(kDevice, one);
    return make_pass(timer_, attention->kernel(), attention);
  }

  GpuWork cudnn_attention(const GpuCase& one) override {
    const std::string name = cudnn::require_cudnn();
    return make_pass(timer_, name,
                     std::make_shared<GpuAttention>(kDevice, one, ring::cudnn_kernels<BFloat16>()));
  }

  GpuWork ring(const GpuCase& one, int ranks, RingClock clock) override {
    return make_ring(one, ranks, clock, timeout_s_);
  }
  GpuWork hops(const HopCase& one) override { return make_hops(timer_, one); }
  std::vector<GpuVersion> versions(const GpuCase& one) override {
    check_device();
    if (one.pass == Pass::backward) {
      return works_of(timer_, cuda::hopper_backward_versions(), one);
    }
    return works_of(timer_, cuda::hopper_versions(), one);
  }

 private:
  const double timeout_s_;
  const GpuTimer timer_{kDevice};
};

}  // namespace

std::unique_ptr<Gpu> open_gpu(double timeout_s) {
  cuda::device_count();  // says so when there is none
  return std::make_unique<CudaGpu>(timeout_s);
}

}  // namespace ringlab::bench
