// Runs on devices, and queries about devices and kernels: in every build, with or without CUDA.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "optimized/ring/place.h"
#include "optimized/ring/process_job.h"
#include "optimized/ring/streams/device_checks.h"
#include "reference/core/numerics.h"

namespace ringlab::ring {

/// Environment error that says what is missing when there is no device, or no CUDA in this build.
void require_devices();

/// copies_text() for the devices that a run of so many ranks uses. Environment error where there is
/// none.
std::string device_copies(const RunOptions& options);

/// The kernels and devices that a run would use.
struct DeviceChoice {
  std::string kernels;
  std::string devices;
  std::string copies;  ///< between devices, where there are several: copies_text()
};
DeviceChoice describe_device_run(const Problem& problem, const RunOptions& options);

/// Whose kernels attend to a chunk.
enum class AttentionOf { ringlab, cudnn };

/// Ranks that are streams of this process, on all devices that there are (OnStreams). Channels are
/// padded to multiples of 8. Problems that its kernels do not take are a usage error
/// (check_device_run()), or NotOnCudnn, before a device is asked for; where cuDNN has no kernel it
/// is cudnn::Refusal, an environment error. Gradients have the same bits from run to run where
/// options.deterministic, for which cuDNN's workspace grows with queries times keys of a chunk.
/// options.timeout_s is the deadline of all work on the devices together (DeviceRun::timeout_s).
class OnDevices final : public Place {
 public:
  explicit OnDevices(AttentionOf attention = AttentionOf::ringlab) : attention_(attention) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  const AttentionOf attention_;
};

/// True when this build has CUDA and NCCL, which ranks that are processes with a device each need.
bool nccl_available();
/// Environment error that says what is missing for ranks that are processes with a device each:
/// CUDA or NCCL in this build, NCCL or a device on this machine.
void require_nccl();

/// The kernels, device and NCCL library of a rank with a device of its own.
struct RankChoice {
  std::string kernels;  ///< as DeviceChoice::kernels, or "cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)"
  std::string device;   ///< "NVIDIA A100, 0000:17:00.0 of machine …"
  std::string nccl;     ///< "2.28.9 (/usr/lib/libnccl.so.2)"
};

/// One rank, which is a process and computes on a device; chunks and sums travel over NCCL. Ranks
/// take the devices of their machine in turn. Ranks that share a device are refused before NCCL
/// could hang, unless it is 2.30 or newer and told so (nccl_group.h). options.timeout_s is the
/// deadline of each exchange, and of all that is on the device together. Ranks agree on the
/// problem, the options and whose kernels attend. Other errors as OnDevices. `on_choice` is called
/// with the choice.
class OverNccl final : public Place {
 public:
  explicit OverNccl(ProcessJob job, AttentionOf attention = AttentionOf::ringlab,
                    std::function<void(const RankChoice&)> on_choice = {})
      : job_(std::move(job)), attention_(attention), on_choice_(std::move(on_choice)) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  const ProcessJob job_;
  const AttentionOf attention_;
  const std::function<void(const RankChoice&)> on_choice_;
};

/// The accuracy that kernels on devices promise for this problem, whichever are chosen.
NumericsProfile device_engine_profile(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
