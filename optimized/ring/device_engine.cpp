#include "optimized/ring/device_engine.h"

#include <algorithm>
#include <type_traits>

#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "reference/core/error.h"

#ifdef RINGLAB_HAVE_CUDA
#include "optimized/cuda/device.h"
#include "optimized/ring/streams/device_copies.h"
#include "optimized/ring/streams/device_kernels.h"
#include "optimized/ring/vendor/cudnn_kernels.h"
#include "optimized/ring/vendor/cudnn_run.h"
#endif
#ifdef RINGLAB_HAVE_NCCL
#include "optimized/ring/agreement.h"
#include "optimized/ring/messages/nccl_run.h"
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
DeviceKernels<Element> kernels_for(AttentionOf attention, const Problem& padded,
                                   const RunOptions& options) {
  if (attention == AttentionOf::cudnn) {
    const int devices = std::min(cuda::device_count(), options.ranks);
    for (int device = 0; device < devices; ++device) check_cudnn_on(device, padded);
    return cudnn_kernels<Element>();
  }
  return device_kernels<Element>(choose_kernels(padded, options).forward, padded.shape,
                                 {.left_free = options.free_multiprocessors});
}
template <class Element>
RunSummary run_on_streams(const CheckedRun<Element>& padded, AttentionOf attention) {
  const RunOptions& options = padded.options;
  return OnStreams<Element>(kernels_for<Element>(attention, padded.problem, options),
                            {.issue_as = options.as_graph ? IssueAs::graph : IssueAs::streams,
                             .gradients = repeatable_gradients(options),
                             .timeout_s = options.timeout_s})
      .run(padded);
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
RunSummary run_on_streams(const CheckedRun<Element>&, AttentionOf) {
  return {};
}
#endif

#ifdef RINGLAB_HAVE_NCCL
constexpr bool kHasNccl = true;
std::string nccl_text() { return nccl::require_nccl(); }

/// Kernels of one rank, and their description.
template <class Element>
struct RankKernels {
  DeviceKernels<Element> kernels;
  std::string text;
};
/// NCCL's copies are kernels: they need multiprocessors that are left free, or a turn between
/// tiles.
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
RunSummary run_one_rank(const CheckedRun<Element>& padded, const ProcessJob& job,
                        AttentionOf attention,
                        const std::function<void(const RankChoice&)>& on_choice) {
  const RankDevice device =
      choose_rank_device(tell_all_of(job), job.network.rank(), this_machine());
  RankKernels<Element> chosen =
      rank_kernels<Element>(attention, device.number, padded.problem, padded.options);
  if (on_choice) on_choice({chosen.text, device.model + ", " + device.name, nccl_text()});
  return OneNcclRank<Element>(std::move(chosen.kernels), job, device).run(padded);
}

void agree_on(const Problem& problem, const RunOptions& options, Pass last_pass,
              AttentionOf attention, Communicator& network) {
  Facts facts = facts_of(problem, options, last_pass);
  facts.push_back({"attention", attention == AttentionOf::cudnn ? "cuDNN's" : "ringlab's"});
  agree(facts, network);
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
template <class Element>
RunSummary run_one_rank(const CheckedRun<Element>&, const ProcessJob&, AttentionOf,
                        const std::function<void(const RankChoice&)>&) {
  return {};
}
void agree_on(const Problem&, const RunOptions&, Pass, AttentionOf, Communicator&) {}
#endif

/// Throws for problems that `attention` cannot compute, even without gradients.
void check_attention(AttentionOf attention, const Problem& problem, const RunOptions& options) {
  switch (attention) {
    case AttentionOf::ringlab:
      return check_device_run(problem, options);
    case AttentionOf::cudnn:
      return check_on_cudnn(problem, options, Pass::forward);
  }
}

/// Throws, if gradients are wanted, where `attention` cannot compute them.
template <class Element>
void check_gradients(AttentionOf attention, const CheckedRun<Element>& run,
                     const RankRows<Element>& rows) {
  if (attention != AttentionOf::cudnn || !rows.dout) return;
  check_on_cudnn(run.problem, run.options, Pass::backward);
}

/// Calls `body` with the run in the type of its elements, f16 or bf16.
template <class Body>
RunSummary with_kernel_type(const AnyRun& any, const Body& body) {
  return std::visit(
      [&]<class Element>(const CheckedRun<Element>& run) -> RunSummary {
        if constexpr (std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>) {
          return body(run);
        } else {
          check_kernel_dtype(run.problem.dtype);  // has thrown when the run was checked
          return {};
        }
      },
      any);
}

/// The run of `padded`, the problem with padded channels; `source` gives its rows.
template <class Element, class Source>
CheckedRun<Element> padded_run(const CheckedRun<Element>& run, const Problem& padded,
                               Source source) {
  const Ends<Element> ends{.source = std::move(source), .sink = run.ends.sink};
  return {padded, run.options, padded_ends(run.problem.shape, ends), run.parts};
}

}  // namespace

void require_devices() { require_cuda(); }

std::string device_copies(const RunOptions& options) {
  require_devices();
  return copies_of(options);
}

DeviceChoice describe_device_run(const Problem& problem, const RunOptions& options) {
  require_devices();
  return choice_of(with_padded_channels(problem), options);
}

void OnDevices::check(const Problem& problem, const RunOptions& options) const {
  check_attention(attention_, problem, options);
}

RunSummary OnDevices::run(const AnyRun& any) const {
  attention_ == AttentionOf::cudnn ? require_cudnn() : require_devices();
  return with_kernel_type(any, [&]<class Element>(const CheckedRun<Element>& run) {
    const auto source = [&](const RankTokens& tokens) {
      RankRows<Element> rows = run.ends.source(tokens);
      if (tokens.rank == 0) check_gradients(attention_, run, rows);  // of all ranks, or of none
      return rows;
    };
    const Problem padded = with_padded_channels(run.problem);
    return run_on_streams(padded_run(run, padded, source), attention_);
  });
}

bool nccl_available() { return kHasNccl; }

void require_nccl() {
  nccl_text();
  require_devices();
}

void OverNccl::check(const Problem& problem, const RunOptions& options) const {
  check_attention(attention_, problem, options);
}

RunSummary OverNccl::run(const AnyRun& any) const {
  require_nccl();
  return with_kernel_type(any, [&]<class Element>(const CheckedRun<Element>& run) {
    const int rank = job_.network.rank();
    const Shape& shape = run.problem.shape;
    const Layout queries = make_layout(run.options, shape.q_tokens, run.options.q_layout);
    const Layout keys = make_layout(run.options, shape.kv_tokens, run.options.kv_layout);
    RankRows<Element> rows = run.ends.source({rank, queries.positions(rank), keys.positions(rank)});
    check_gradients(attention_, run, rows);
    agree_on(run.problem, run.options, rows.dout ? Pass::backward : Pass::forward, attention_,
             job_.network);
    const Problem padded = with_padded_channels(run.problem);
    const auto source = [&](const RankTokens&) { return rows; };
    return run_one_rank(padded_run(run, padded, source), job_, attention_, on_choice_);
  });
}

NumericsProfile device_engine_profile(const Problem& problem, const RunOptions& options) {
  const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t blocks = 1;
  for (int owner = 0; owner < options.ranks; ++owner) {
    blocks += cuda::most_blocks_met(keys.positions(owner).size());
  }
  // The portable kernels are at least as accurate as the Hopper kernel promises.
  return cuda::hopper_profile(problem.dtype, blocks);
}

}  // namespace ringlab::ring
