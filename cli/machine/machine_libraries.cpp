// Libraries found at run time through the dynamic loader, as a program would load them.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "cli/machine/machine.h"
#include "optimized/cuda/cudnn/cudnn_library.h"
#include "optimized/transport/nccl/nccl_library.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

// A loaded library; closed never, since some do not survive it.
class Loaded {
 public:
  explicit Loaded(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
      if (handle_) {
        name_ = name;
        return;
      }
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  template <class Function>
  Function* function(const char* symbol) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, symbol)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

CudaDevice describe_device(const Loaded& driver, int index) {
  // Attribute numbers of cuda.h: CU_DEVICE_ATTRIBUTE_CLOCK_RATE and so on.
  constexpr int kClock = 13, kMultiprocessors = 16, kMemoryClock = 36, kMajor = 75, kMinor = 76;
  CudaDevice device;
  int handle = 0;
  auto* get = driver.function<int(int*, int)>("cuDeviceGet");
  auto* get_name = driver.function<int(char*, int, int)>("cuDeviceGetName");
  auto* get_memory = driver.function<int(std::size_t*, int)>("cuDeviceTotalMem_v2");
  auto* get_attribute = driver.function<int(int*, int, int)>("cuDeviceGetAttribute");
  if (!get || get(&handle, index) != 0) return device;
  std::array<char, 256> name{};
  if (get_name && get_name(name.data(), static_cast<int>(name.size()) - 1, handle) == 0) {
    device.name = name.data();
  }
  std::size_t bytes = 0;
  if (get_memory && get_memory(&bytes, handle) == 0) {
    device.memory_bytes = static_cast<std::int64_t>(bytes);
  }
  if (get_attribute) {
    int kilohertz = 0, memory_kilohertz = 0;
    get_attribute(&device.major, kMajor, handle);
    get_attribute(&device.minor, kMinor, handle);
    get_attribute(&device.multiprocessors, kMultiprocessors, handle);
    get_attribute(&kilohertz, kClock, handle);
    get_attribute(&memory_kilohertz, kMemoryClock, handle);
    device.clock_hz = std::int64_t{1000} * kilohertz;
    device.memory_clock_hz = std::int64_t{1000} * memory_kilohertz;
  }
  return device;
}

/// A library that `open` opens, or the problem of opening it.
Library find_opened(const char* name, void (*open)(Library&)) {
  Library library{name, "", ""};
  try {
    open(library);
  } catch (const Error& error) {
    library.problem = error.parts().actual;
  }
  return library;
}

}  // namespace

CudaDriver find_cuda_driver() {
  CudaDriver found;
  const Loaded driver({"libcuda.so.1"});
  if (!driver) {
    found.problem = "no NVIDIA driver (libcuda.so.1)";
    return found;
  }
  found.found = true;
  found.module = find_nvidia_module();
  int version = 0;
  auto* get_version = driver.function<int(int*)>("cuDriverGetVersion");
  if (get_version && get_version(&version) == 0) {
    found.version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  }
  auto* initialize = driver.function<int(unsigned)>("cuInit");
  auto* get_count = driver.function<int(int*)>("cuDeviceGetCount");
  const int error = initialize ? initialize(0) : -1;
  int count = 0;
  if (error != 0 || !get_count || get_count(&count) != 0) {
    found.problem = fmt::format("the driver does not start (cuInit gives error {})", error);
    return found;
  }
  if (count == 0) found.problem = "the driver finds no device";
  for (int i = 0; i < count; ++i) found.devices.push_back(describe_device(driver, i));
  return found;
}

Library find_nccl() {
  return find_opened("NCCL", [](Library& library) {
    const nccl::NcclLibrary found = nccl::open_library(nccl::library_name());
    library.version = nccl::version_text(found.version);
    library.file = found.file;
  });
}

Library find_cudnn() {
  return find_opened("cuDNN", [](Library& library) {
    const cudnn::CudnnLibrary found = cudnn::open_library(cudnn::library_name());
    library.version = cudnn::version_text(found.version);
    library.file = found.file;
  });
}

Library find_mpi() {
  const Loaded mpi({"libmpi.so.40", "libmpi.so.12", "libmpi.so"});
  Library library{"MPI", "", mpi.name()};
  constexpr std::size_t kLongest = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH; Open MPI: 256
  std::string text(kLongest, '\0');
  int length = 0;
  auto* get_version = mpi.function<int(char*, int*)>("MPI_Get_library_version");
  if (get_version && get_version(text.data(), &length) == 0 && length > 0) {
    text.resize(std::min(static_cast<std::size_t>(length), kLongest));
    library.version = text.substr(0, text.find_first_of(",\n"));
  }
  return library;
}

ThisMachine find_machine() {
  return {find_processor(), find_memory(), find_cuda_driver(),
          find_nccl(),      find_cudnn(),  find_mpi()};
}

}  // namespace ringlab::cli
