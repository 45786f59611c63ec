// `ringlab bench gpu` on the first CUDA device.
#include <cuda_runtime.h>

#include <array>
#include <utility>

#include "cli/bench/gpu/gpu_attention.h"
#include "cli/bench/gpu/gpu_kernels.h"
#include "cli/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"

namespace ringlab::bench {
namespace {

constexpr int kDevice = 0;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void check(cudaError_t status, const char* call) { cuda::check_cuda(status, call, "bench gpu"); }

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

  GpuWork cudnn_attention(const GpuCase& one) override { return make_cudnn_attention(timer_, one); }

  GpuWork ring(const GpuCase& one, int ranks, RingClock clock) override {
    return make_ring(one, ranks, clock, timeout_s_);
  }
  GpuWork hops(const HopCase& one) override { return make_hops(timer_, one); }
  std::vector<GpuVersion> versions(const GpuCase& one) override {
    return make_versions(timer_, one);
  }

 private:
  const double timeout_s_;
  const GpuTimer timer_{kDevice};
};

}  // namespace

GpuWork make_pass(const GpuTimer& timer, const std::string& kernel,
                  std::shared_ptr<const GpuAttention> attention, double exp_error) {
  return {kernel,
          [&timer, attention] {
            return timer.seconds_of([&](cuda::Stream stream) { attention->issue(stream); });
          },
          [attention, exp_error] { return wrong_in(attention->sample(), exp_error); }};
}

std::unique_ptr<Gpu> open_gpu(double timeout_s) {
  cuda::device_count();  // says so when there is none
  return std::make_unique<CudaGpu>(timeout_s);
}

}  // namespace ringlab::bench
