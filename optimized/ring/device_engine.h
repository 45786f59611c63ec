// The ring engine on devices, as the rest of the program sees it: in every build, with or without
// CUDA.
#pragma once

#include <functional>
#include <string>

#include "optimized/ring/engine.h"
#include "optimized/ring/native.h"
#include "optimized/transport/communicator.h"
#include "reference/core/numerics.h"

namespace ringlab::ring {

/// What runs on devices cannot do is a usage error: types other than f16 and bf16, score modifiers,
/// bit matrices, lossy wire formats, more than 256 channels. Channels that are no multiple of 8 are
/// padded. Known without a device.
void check_device_run(const Problem& problem, const RunOptions& options);

/// Environment error that says what is missing when there is no device, or no CUDA in this build.
void require_devices();

/// What copies_text() says of the devices that a run of so many ranks uses. Environment error where
/// there is none.
std::string device_copies(const RunOptions& options);

/// Which kernels a run would use, and on what devices.
struct DeviceChoice {
  std::string kernels;
  std::string devices;
  std::string copies;  ///< between devices, where there are several: copies_text()
};
DeviceChoice describe_device_run(const Problem& problem, const RunOptions& options);

/// As run_native(), on all devices that there are (cuda_streams.h), with gradients of the same bits
/// from run to run where options.deterministic. options.timeout_s is the deadline of all that is on
/// the devices together (DeviceRun::timeout_s). Half and BFloat16.
template <class Element>
NativeSummary run_native_on_devices(const Problem& problem, const RunOptions& options,
                                    const NativeEnds<Element>& ends);

/// As run_engine().
RunResult run_engine_on_devices(const AttentionInput& input, const RunOptions& options);

/// Whether this build has what ranks that are processes with a device each need.
bool nccl_available();
/// Environment error that says what is missing for ranks that are processes with a device each:
/// CUDA or NCCL in this build, NCCL or a device on this machine.
void require_nccl();

/// The ranks of a job, which are processes.
struct ProcessJob {
  Communicator& network;  ///< carries what they say besides data
  /// Asked while the device works: throws when another rank has failed. May be empty.
  std::function<void(const std::string& operation)> check_others = {};
};

struct DeviceShardResult {
  ShardResult shard;
  std::string kernels;  ///< as DeviceChoice::kernels, or "cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)"
  std::string device;   ///< "NVIDIA A100, 0000:17:00.0 of machine …"
  std::string nccl;     ///< "2.28.9 (/usr/lib/libnccl.so.2)"
};

/// Whose kernels attend to a chunk.
enum class AttentionOf { ringlab, cudnn };

/// As run_engine_rank(), for a rank that computes on a device; chunks and sums travel over NCCL.
/// Ranks take the devices of their machine in turn. Ranks that share a device are refused
/// before NCCL could hang, unless it is 2.30 or newer and told so (nccl_group.h). options.timeout_s is the deadline of each exchange,
/// and of all that is on the device together.
/// Ranks agree on whose kernels attend; what cuDNN is not asked for is NotOnCudnn.
DeviceShardResult run_engine_rank_over_nccl(const Problem& problem, const RunOptions& options,
                                            const ShardInput& shard, const ProcessJob& job,
                                            AttentionOf attention = AttentionOf::ringlab);

/// What the kernels on devices promise for this problem, whichever are chosen.
NumericsProfile device_engine_profile(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
