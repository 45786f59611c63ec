#include "optimized/ring/messages/nccl_run.h"

#include <algorithm>
#include <chrono>

#include "optimized/ring/checks.h"
#include "optimized/ring/messages/link_probe.h"
#include "optimized/ring/messages/nccl_links.h"
#include "optimized/ring/streams/device_checks.h"
#include "reference/core/checks.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

constexpr int kNcclTag = (1 << 20) + 7;  // far from other tags

nccl::GroupPlace place_of(const RunOptions& options, const ProcessJob& job,
                          const RankDevice& device) {
  // The deadline is finite: an infinite one cannot be counted in milliseconds.
  constexpr double kLongest = 1e9;  // thirty years
  return {.rank = job.network.rank(),
          .ranks = job.network.ranks(),
          .device = device.name,
          // Rounded up, so that a timeout above zero stays above zero.
          .deadline = std::chrono::ceil<std::chrono::milliseconds>(
              std::chrono::duration<double>(std::min(options.timeout_s, kLongest))),
          .check_others = job.check_others};
}

}  // namespace

TellAll tell_all_of(const ProcessJob& job) { return tell_all_over(job.network, kNcclTag); }

template <class Element>
void OneNcclRank<Element>::check(const Problem& problem, const RunOptions& options) const {
  check_dtype(dtype_of<Element>, problem.dtype);
  check_device_abilities(problem, options);
  check_range("ranks", options.ranks, job_.network.ranks(), job_.network.ranks());
}

template <class Element>
RunSummary OneNcclRank<Element>::run(const AnyRun& any) const {
  const RunOptions& options = std::get<CheckedRun<Element>>(any).options;
  const nccl::GroupPlace place = place_of(options, job_, device_);
  NcclLinks links(place, device_.number, tell_all_of(job_), tell_all_of(job_));  // outlives graphs
  probe_links(links, {.rank = place.rank, .ranks = place.ranks, .device = device_.number});
  return OverLinks<Element>(kernels_, links,
                            {.rank = place.rank,
                             .device = device_.number,
                             .gradients = repeatable_gradients(options),
                             .issue_as = options.as_graph ? IssueAs::graph : IssueAs::streams})
      .run(any);
}
template class OneNcclRank<Half>;
template class OneNcclRank<BFloat16>;

}  // namespace ringlab::ring
