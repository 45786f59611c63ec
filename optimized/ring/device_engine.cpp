#include "optimized/ring/device_engine.h"

#include <algorithm>

#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/ring/device_checks.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "optimized/ring/whole_tensors.h"
#include "reference/core/error.h"

#ifdef RINGLAB_HAVE_CUDA
#include "optimized/cuda/device.h"
#include "optimized/ring/streams/device_copies.h"
#include "optimized/ring/streams/device_kernels.h"
#endif
#ifdef RINGLAB_HAVE_NCCL
#include "optimized/ring/agreement.h"
#include "optimized/ring/messages/nccl_run.h"
#include "optimized/ring/shard_rows.h"
#include "optimized/ring/vendor/cudnn_kernels.h"
#include "optimized/ring/vendor/cudnn_run.h"
#include "optimized/transport/nccl/nccl_group.h"
#endif

namespace ringlab::ring {
namespace {

constexpr const char* kWhere = "device cuda";

#ifdef RINGLAB_HAVE_CUDA
void require_cuda() { cuda::device_count(); }
std::string copies_of(const RunOptions& options) {
  return copies_text(std::min(cuda::device_count(), options.ranks));
}
DeviceChoice choice_of(const Problem& problem, const RunOptions& options) {
  const KernelChoice choice = choose_kernels(problem, options);
  return {choice.text(), choice.devices, copies_of(options)};
}
template <class Element>
NativeSummary run_padded(const Problem& problem, const RunOptions& options,
                         const NativeEnds<Element>& ends) {
  const KernelChoice choice = choose_kernels(problem, options);
  return run_on_devices<Element>(
      problem, options, ends,
      device_kernels<Element>(choice.forward, problem.shape,
                              {.left_free = options.free_multiprocessors}),
      {.issue_as = options.as_graph ? IssueAs::graph : IssueAs::streams,
       .gradients = repeatable_gradients(options),
       .timeout_s = options.timeout_s});
}
#else
void require_cuda() {
  throw_environment_error({.where = kWhere,
                           .expected = "a CUDA device",
                           .actual = "a build without CUDA: not compiled in",
                           .hint = "Use --device cpu, or build with -DRINGLAB_CUDA=ON"});
}
std::string copies_of(const RunOptions&) { return ""; }
DeviceChoice choice_of(const Problem&, const RunOptions&) { return {}; }
template <class Element>
NativeSummary run_padded(const Problem&, const RunOptions&, const NativeEnds<Element>&) {
  return {};
}
#endif

#ifdef RINGLAB_HAVE_NCCL
constexpr bool kHasNccl = true;
std::string nccl_text() { return nccl::require_nccl(); }

/// And what they are called.
template <class Element>
struct RankKernels {
  DeviceKernels<Element> kernels;
  std::string text;
};
/// NCCL's copies are kernels: they need multiprocessors that are left free, or a turn between tiles.
cuda::ForwardGrid grid_beside_messages(const RunOptions& options) {
  const int left_free = options.free_multiprocessors;
  return {.stays = options.ranks == 1 || left_free > 0, .left_free = left_free};
}
template <class Element>
RankKernels<Element> rank_kernels(AttentionOf attention, int device, const Problem& padded,
                                  const RunOptions& options) {
  if (attention == AttentionOf::cudnn) {
    check_cudnn_on(device, padded);
    return {cudnn_kernels<Element>(), cudnn_text()};
  }
  const KernelChoice choice = choose_kernels_on(device, padded, options);
  return {device_kernels<Element>(choice.forward, padded.shape, grid_beside_messages(options)),
          choice.text()};
}

template <class Element>
DeviceShardResult run_shard(const Problem& problem, const RunOptions& options,
                            const ShardInput& shard, const NcclJob& job, AttentionOf attention) {
  const NarrowRows<Element> rows(shard);
  const RankDevice device =
      choose_rank_device(tell_all_of(job), job.network.rank(), this_machine());
  const Problem padded = with_padded_channels(problem);
  const RankKernels<Element> chosen =
      rank_kernels<Element>(attention, device.number, padded, options);
  DeviceShardResult result{.shard = {},
                           .kernels = chosen.text,
                           .device = device.model + ", " + device.name,
                           .nccl = nccl_text()};
  const NativeEnds<Element> ends{.source = [&](const RankPlace&) { return rows.shard(); },
                                 .sink =
                                     [&](const RankPlace&, NativeResult<Element>&& mine) {
                                       result.shard = widened_result(std::move(mine));
                                     }};
  run_rank_over_nccl<Element>(padded, options, padded_ends(problem.shape, ends), chosen.kernels,
                              job, device);
  return result;
}

DeviceShardResult run_over_nccl(const Problem& problem, const RunOptions& options,
                                const ShardInput& shard, const ProcessJob& job,
                                AttentionOf attention) {
  const Pass last_pass = shard.dout ? Pass::backward : Pass::forward;
  const char* const whose = attention == AttentionOf::cudnn ? "|cudnn" : "";
  agree(agreement_text(problem, options, last_pass) + whose, job.network);
  const NcclJob talk{.network = job.network, .check_others = job.check_others};
  return problem.dtype == DType::f16
             ? run_shard<Half>(problem, options, shard, talk, attention)
             : run_shard<BFloat16>(problem, options, shard, talk, attention);
}
#else
constexpr bool kHasNccl = false;
std::string nccl_text() {
  require_cuda();
  throw_environment_error({.where = "NCCL",
                           .expected = "a build with NCCL",
                           .actual = "one built without nccl.h",
                           .hint = "Install libnccl-dev and configure with -DRINGLAB_NCCL=ON"});
}
DeviceShardResult run_over_nccl(const Problem&, const RunOptions&, const ShardInput&,
                                const ProcessJob&, AttentionOf) {
  return {};
}
#endif

void check_channels(const Shape& shape) {
  constexpr std::int64_t kMost = 256;
  if (std::max(shape.head_dim, shape.v_dim) <= kMost) return;
  throw_usage_error({.where = "shape",
                     .expected = "head_dim and v_dim of at most 256 on devices",
                     .actual = "head_dim = " + std::to_string(shape.head_dim) +
                               ", v_dim = " + std::to_string(shape.v_dim),
                     .hint = "Use --device cpu"});
}

void check_kernel_dtype(DType dtype) {
  if (dtype == DType::f16 || dtype == DType::bf16) return;
  throw_usage_error({.where = "--dtype",
                     .expected = "f16 or bf16 for the kernels on devices",
                     .actual = std::string(dtype_info(dtype).name),
                     .hint = "Give --dtype bf16, or use --device cpu"});
}

}  // namespace

void check_device_run(const Problem& problem, const RunOptions& options) {
  check_kernel_dtype(problem.dtype);
  check_channels(problem.shape);
  check_device_abilities(problem, options);
}

void require_devices() { require_cuda(); }

std::string device_copies(const RunOptions& options) {
  require_devices();
  return copies_of(options);
}

DeviceChoice describe_device_run(const Problem& problem, const RunOptions& options) {
  require_devices();
  return choice_of(with_padded_channels(problem), options);
}

template <class Element>
NativeSummary run_native_on_devices(const Problem& problem, const RunOptions& options,
                                    const NativeEnds<Element>& ends) {
  check_device_run(problem, options);
  require_devices();
  return run_padded<Element>(with_padded_channels(problem), options,
                             padded_ends(problem.shape, ends));
}
template NativeSummary run_native_on_devices(const Problem&, const RunOptions&,
                                             const NativeEnds<Half>&);
template NativeSummary run_native_on_devices(const Problem&, const RunOptions&,
                                             const NativeEnds<BFloat16>&);

RunResult run_engine_on_devices(const AttentionInput& input, const RunOptions& options) {
  check_device_run(input.problem, options);
  RunResult result = empty_result(input);
  const auto run = [&]<class Element>(Element) {
    take_summary(
        run_native_on_devices<Element>(input.problem, options, whole_ends<Element>(input, result)),
        result);
  };
  input.problem.dtype == DType::f16 ? run(Half{}) : run(BFloat16{});
  return result;
}

bool nccl_available() { return kHasNccl; }

void require_nccl() {
  nccl_text();
  require_devices();
}

DeviceShardResult run_engine_rank_over_nccl(const Problem& problem, const RunOptions& options,
                                            const ShardInput& shard, const ProcessJob& job,
                                            AttentionOf attention) {
  if (attention == AttentionOf::cudnn) {
    check_on_cudnn(problem, options, shard.dout ? Pass::backward : Pass::forward);
  } else {
    check_device_run(problem, options);
  }
  require_nccl();
  return run_over_nccl(problem, options, shard, job, attention);
}

NumericsProfile device_engine_profile(const Problem& problem, const RunOptions& options) {
  const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t blocks = 1;
  for (int owner = 0; owner < options.ranks; ++owner) {
    blocks += cuda::most_blocks_met(keys.positions(owner).size());
  }
  // The portable kernels keep what the Hopper kernel promises, and more.
  return cuda::hopper_profile(problem.dtype, blocks);
}

}  // namespace ringlab::ring
