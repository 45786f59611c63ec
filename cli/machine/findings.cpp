#include "cli/machine/findings.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/machine/cuda_code.h"
#include "cli/report/human.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "optimized/transport/mpi/mpi_session.h"

namespace ringlab::cli {
namespace {

/// The problem of a driver for an older CUDA than this build's runtime, in words; empty for none.
std::string driver_problem(const BuildInfo& build, const CudaDriver& driver) {
  const int runs = version_number(driver.version), needs = version_number(build.cuda_runtime);
  if (!build.cuda || !driver.found || runs >= needs) return "";
  if (runs / 1000 < needs / 1000) {
    return fmt::format("too old for this build's CUDA {}: no device will start; update the driver",
                       build.cuda_runtime);
  }
  return fmt::format("older than this build's CUDA {}: devices need kernels compiled for them",
                     build.cuda_runtime);
}

bool too_old(const BuildInfo& build, const CudaDriver& driver) {
  return version_number(driver.version) / 1000 < version_number(build.cuda_runtime) / 1000;
}

std::string capability_of(const CudaDevice& device) {
  return fmt::format("{}.{}", device.major, device.minor);
}

std::string device_effect(const BuildInfo& build, const CudaDriver& driver,
                          const CudaDevice& device) {
  if (!build.cuda) return "idle: configure with -DRINGLAB_CUDA=ON to use --device cuda";
  if (too_old(build, driver)) return "idle: the driver is too old for this build";
  if (device.major < 8) return "idle: kernels need compute capability 8.0 or newer";
  if (!has_code_for(build.cuda_architectures, device.major, device.minor)) {
    return fmt::format(
        "idle: this build has no code for {}; configure with "
        "-DCMAKE_CUDA_ARCHITECTURES={}{}",
        capability_of(device), device.major, device.minor);
  }
  const bool hopper = device.major == 9 && device.minor == 0;
  return hopper ? "--device cuda: Hopper kernels (wgmma), portable (mma.sync) backward above 128 "
                  "channels"
                : "--device cuda: portable kernels (mma.sync)";
}

std::string driver_effect(const BuildInfo& build, const CudaDriver& driver) {
  std::string problem = driver_problem(build, driver);
  if (!problem.empty()) return problem;
  return driver.devices.empty() ? driver.problem : fmt::format("{} devices", driver.devices.size());
}

}  // namespace

int version_number(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) < 1) return 0;
  return 1000 * major + minor;
}

std::vector<Finding> cuda_findings(const BuildInfo& build, const CudaDriver& driver) {
  std::vector<Finding> findings;
  findings.push_back(
      {"CUDA kernels",
       build.cuda ? fmt::format("compiled in for {}, CUDA runtime {}", build.cuda_architectures,
                                build.cuda_runtime)
                  : "not compiled in",
       build.cuda ? "stages and optimized can run on devices" : "everything runs on the CPU"});
  findings.push_back({"NVIDIA driver", driver.found ? "CUDA up to " + driver.version : "not found",
                      driver_effect(build, driver)});
  for (std::size_t i = 0; i < driver.devices.size(); ++i) {
    const CudaDevice& device = driver.devices[i];
    findings.push_back(
        {fmt::format("device {}", i),
         fmt::format("{}, {}, compute capability {}, {} multiprocessors at up to {} MHz",
                     device.name, report::human_bytes(device.memory_bytes), capability_of(device),
                     device.multiprocessors, device.clock_hz / 1'000'000),
         device_effect(build, driver, device)});
  }
  if (driver.devices.empty()) {
    findings.push_back({"devices", "none", "--device cuda will say that there is no device"});
  }
  return findings;
}

Json cuda_json(const BuildInfo& build, const CudaDriver& driver) {
  Json devices = Json::array();
  for (const CudaDevice& device : driver.devices) {
    devices.push_back({{"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"compute_capability", capability_of(device)},
                       {"multiprocessors", device.multiprocessors},
                       {"clock_hz", device.clock_hz},
                       {"memory_clock_hz", device.memory_clock_hz},
                       {"enables", device_effect(build, driver, device)}});
  }
  return {{"compiled_in", build.cuda},
          {"architectures", build.cuda_architectures},
          {"runtime_version", build.cuda_runtime},
          {"driver_found", driver.found},
          {"driver_version", driver.version},
          {"driver_module", driver.module},
          {"driver_problem", driver_problem(build, driver)},
          {"problem", driver.problem},
          {"devices", devices}};
}

namespace {

Json processor_json(const Processor& processor) {
  return {{"model", processor.model},
          {"threads", processor.threads},
          {"simd", processor.simd},
          {"vectors", cpu::vectors_in_use()},
          {"available_vectors", cpu::available_vectors()}};
}

Json memory_json(const Memory& memory) {
  return {{"total_bytes", memory.total_bytes},
          {"available_bytes", memory.available_bytes},
          {"limit_bytes", memory.limit_bytes}};
}

Json library_json(const Library& library, bool compiled_in) {
  return {{"found", !library.file.empty()},
          {"version", library.version},
          {"file", library.file},
          {"compiled_in", compiled_in}};
}

/// A library with the problem that keeps it from being used.
Json library_with_problem_json(const Library& library, bool compiled_in) {
  Json json = library_json(library, compiled_in);
  json["problem"] = library.problem;
  return json;
}

}  // namespace

Json machine_json(const BuildInfo& build, const ThisMachine& machine) {
  return {{"processor", processor_json(machine.processor)},
          {"memory", memory_json(machine.memory)},
          {"cuda", cuda_json(build, machine.driver)},
          {"nccl", library_with_problem_json(machine.nccl, ring::nccl_available())},
          {"cudnn", library_with_problem_json(machine.cudnn, ring::cudnn_available())},
          {"mpi", library_json(machine.mpi, mpi_available())}};
}

}  // namespace ringlab::cli
