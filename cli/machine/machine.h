// Facts about this machine: processor, memory, NVIDIA driver and devices, libraries.
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
  int multiprocessors = 0;
  std::int64_t clock_hz = 0, memory_clock_hz = 0;  ///< the highest that they go to
  int major = 0, minor = 0;                        ///< compute capability
};
/// Asked of the driver library at run time, so it works in builds without CUDA too.
struct CudaDriver {
  bool found = false;
  std::string version;  ///< newest CUDA it supports, "13.0"
  std::string module;   ///< what the kernel's module says of itself, with the driver's own version
  std::string problem;  ///< why there are no devices
  std::vector<CudaDevice> devices;
};
CudaDriver find_cuda_driver();
/// The version line of NVIDIA's kernel module; empty where there is none.
std::string find_nvidia_module();

struct Library {
  std::string name;
  std::string version;  ///< empty when it was not found, or does not tell
  std::string file;     ///< empty when it was not found
  std::string problem = {};
};
/// The NCCL that --transport nccl would use; `problem` says why there is none.
Library find_nccl();
/// The cuDNN that the subject cudnn would use; `problem` says why there is none.
Library find_cudnn();
Library find_mpi();

/// All facts about this machine.
struct ThisMachine {
  Processor processor;
  Memory memory;
  CudaDriver driver;
  Library nccl, cudnn, mpi;
};
ThisMachine find_machine();

}  // namespace ringlab::cli
