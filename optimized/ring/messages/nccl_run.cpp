#include "optimized/ring/messages/nccl_run.h"

#include <algorithm>
#include <chrono>

#include "optimized/ring/messages/link_probe.h"
#include "optimized/ring/messages/nccl_links.h"
#include "reference/core/checks.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

constexpr int kNcclTag = (1 << 20) + 7;  // far from those of others

nccl::GroupPlace place_of(const RunOptions& options, const NcclJob& job, const RankDevice& device) {
  constexpr double kLongest = 1e9;  // thirty years
  return {.rank = job.network.rank(),
          .ranks = job.network.ranks(),
          .device = device.name,
          .deadline = std::chrono::ceil<std::chrono::milliseconds>(
              std::chrono::duration<double>(std::min(options.timeout_s, kLongest))),
          .check_others = job.check_others};
}

}  // namespace

TellAll tell_all_of(const NcclJob& job) { return tell_all_over(job.network, kNcclTag); }

template <class Element>
RankStats run_rank_over_nccl(const Problem& problem, const RunOptions& options,
                             const NativeEnds<Element>& ends, const DeviceKernels<Element>& kernels,
                             const NcclJob& job, const RankDevice& device) {
  const nccl::GroupPlace place = place_of(options, job, device);
  check_range("ranks", options.ranks, place.ranks, place.ranks);
  NcclLinks links(place, device.number, tell_all_of(job), tell_all_of(job));  // outlives graphs
  probe_links(links, {.rank = place.rank, .ranks = place.ranks, .device = device.number});
  return run_rank_on_device<Element>(
      problem, options, ends, kernels, links,
      {.rank = place.rank,
       .device = device.number,
       .gradients = repeatable_gradients(options),
       .issue_as = options.as_graph ? IssueAs::graph : IssueAs::streams});
}

#define RINGLAB_RUN_RANK_OVER_NCCL_OF(Element)                                                     \
  template RankStats run_rank_over_nccl(const Problem&, const RunOptions&,                         \
                                        const NativeEnds<Element>&, const DeviceKernels<Element>&, \
                                        const NcclJob&, const RankDevice&)
RINGLAB_RUN_RANK_OVER_NCCL_OF(Half);
RINGLAB_RUN_RANK_OVER_NCCL_OF(BFloat16);
#undef RINGLAB_RUN_RANK_OVER_NCCL_OF

}  // namespace ringlab::ring
