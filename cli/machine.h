// What this machine has: processor, memory, NVIDIA driver and devices, libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringlab::cli {

struct Processor {
  std::string model;
  int threads = 0;                ///< this process may use
  std::vector<std::string> simd;  ///< the instruction sets that matter for kernels
};
Processor find_processor();

struct Memory {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t limit_bytes = 0;  ///< of the control group, 0 when there is none
};
Memory find_memory();

struct CudaDevice {
  std::string name;
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;  ///< compute capability
};
/// Asked of the driver library at run time, so it works in builds without CUDA too.
struct CudaDriver {
  bool found = false;
  std::string version;  ///< newest CUDA it supports, "13.0"
  std::string problem;  ///< why there are no devices
  std::vector<CudaDevice> devices;
};
CudaDriver find_cuda_driver();

struct Library {
  std::string name;
  std::string version;  ///< empty when it was not found, or does not tell
  std::string file;     ///< empty when it was not found
  std::string problem = {};
};
/// The one that --transport nccl would use; `problem` says why there is none.
Library find_nccl();
/// The one that the subject cudnn would use; `problem` says why there is none.
Library find_cudnn();
Library find_mpi();

}  // namespace ringlab::cli
