// A device as `ringlab_goals gpu` sees it: work that it times itself. Implemented by a CUDA device,
// or by a stand-in of tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_case.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::bench {

struct GpuFacts {
  std::string name;
  std::string driver;          ///< CUDA that it supports, "13.0"
  std::string runtime;         ///< CUDA that this program has, "13.0"
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
};

/// Repeatable work on the device. All that it needs lives as long as it does.
struct GpuWork {
  std::string kernel;  ///< name of the kernel that does it
  /// Does the work once, the device's caches overwritten before, and returns its seconds by the
  /// device's clock.
  std::function<double()> seconds;
  /// An error found in a sample of the last results, in words; empty where they are right. No
  /// function where nobody looks.
  std::function<std::string()> wrong = {};
};

/// "wrong results: …", or empty.
std::string wrong_results_of(const GpuWork& work);

/// A version of a kernel, and what it adds to the one before it.
struct GpuVersion {
  std::string name;
  std::string what;
  bool is_step = true;  ///< false: the kernel with one thing changed
  GpuWork work;
};

/// Whose clock times a ring: the device's, which stands still while the host issues all that there
/// is to do; or the host's, from the first launch until all is done, launches included.
enum class RingClock { device, host };

/// Environment errors where memory, a library or a kernel is missing.
class Gpu {
 public:
  virtual ~Gpu() = default;
  /// Names the goal that later calls work for, as messages then do; empty for none.
  virtual void about(const std::string& goal) { static_cast<void>(goal); }
  virtual GpuFacts facts() = 0;
  /// The clock of the multiprocessors, under load, measured.
  virtual double clock_hz() = 0;
  /// The product of (n, n) bf16 matrices on tensor cores, sums in f32, by NVIDIA's library.
  virtual GpuWork matrix_product(std::int64_t n) = 0;
  /// Attention from bf16 inputs to bf16 outputs, with all steps of the pass.
  virtual GpuWork attention(const GpuCase& one) = 0;
  /// Attention by cuDNN, without PyTorch around it. Environment error where this build or this
  /// machine has no cuDNN.
  virtual GpuWork cudnn_attention(const GpuCase& one) = 0;
  /// The forward pass of a ring, zigzag, its ranks all on this device; with one rank it is one
  /// shot.
  virtual GpuWork ring(const GpuCase& one, int ranks, RingClock clock) = 0;
  virtual GpuWork hops(const HopCase& one) = 0;
  /// The versions of the Hopper kernel that compute this case; the last step is the kernel itself.
  /// Environment error on a device that the kernel is not for.
  virtual std::vector<GpuVersion> versions(const GpuCase& one) = 0;
};

/// The first device. Environment error where there is none, or no CUDA in this build. A ring's work
/// on the device has `timeout_s`; then DeviceStuck says where each of its streams stands.
std::unique_ptr<Gpu> open_gpu(double timeout_s);

/// A deadline for work whose kernel or copy never ends.
struct GpuDeadline {
  double seconds = 0;  ///< for each piece of work: to make it, do it once, look at its results
  /// Is told the work that passed the deadline and still runs, in a thread of its own. Has to end
  /// the program: nothing that the device uses can be freed.
  std::function<void(const DeviceStuck&)> passed;
};

/// Wraps the device that `open` returns: each piece of work, opening included, has the deadline.
std::unique_ptr<Gpu> with_deadline(const std::function<std::unique_ptr<Gpu>()>& open,
                                   const GpuDeadline& deadline);

}  // namespace ringlab::bench
