// The engine on ranks inside this process: each asks for its rows and hands over its results.
#include "optimized/ring/native.h"

#include <algorithm>
#include <new>
#include <utility>

#include "optimized/ring/native_checks.h"
#include "optimized/transport/run_network.h"
#include "reference/core/error.h"
#include "reference/core/schedule/schedule_plan.h"

namespace ringlab::ring {
namespace {

void check_device(const RunOptions& options) {
  if (options.device == DeviceKind::cpu) return;
  throw_environment_error({.where = "device",
                           .expected = "cpu, the only device the ring engine runs on so far",
                           .actual = "cuda",
                           .hint = ""});
}

struct Layouts {
  Layout queries, keys;
};

/// `parts` with what the ranks share.
EngineParts shared_parts(const EngineParts& parts, const Problem& problem,
                         const RunOptions& options, const Layouts& layouts) {
  EngineParts shared = parts;
  if (!shared.clock_zero) shared.clock_zero = std::chrono::steady_clock::now();
  if (!shared.plan) {
    shared.plan = std::make_shared<const SchedulePlan>(
        schedule_spec(options), need_matrix(problem.mask, layouts.queries, layouts.keys));
  }
  return shared;
}

template <class Element>
NativeSummary run_on_network(const Problem& problem, const RunOptions& options,
                             const NativeEnds<Element>& ends, const EngineParts& parts) {
  check_run(problem, options);
  check_device(options);
  const Layouts layouts{make_layout(options, problem.shape.q_tokens, options.q_layout),
                        make_layout(options, problem.shape.kv_tokens, options.kv_layout)};
  const EngineParts shared = shared_parts(parts, problem, options, layouts);
  std::vector<double> seconds(static_cast<std::size_t>(options.ranks));
  NativeSummary summary{.ranks = std::vector<RankStats>(seconds.size())};
  const NetworkSummary network = run_network(options, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const auto at = static_cast<std::size_t>(rank);
    const RankPlace place{rank, layouts.queries.positions(rank), layouts.keys.positions(rank)};
    const NativeShard<Element> shard = ends.source(place);
    NativeResult<Element> mine =
        run_native_rank<Element>(problem, options, shard, communicator, shared);
    seconds[at] = mine.seconds;
    summary.ranks[at] = std::move(mine.stats);
    ends.sink(place, std::move(mine));
  });
  summary.leftover_messages = network.leftover_messages;
  summary.seconds = std::ranges::max(seconds);
  return summary;
}

}  // namespace

template <class Element>
NativeSummary run_native(const Problem& problem, const RunOptions& options,
                         const NativeEnds<Element>& ends, const EngineParts& parts) {
  try {
    return run_on_network(problem, options, ends, parts);
  } catch (const std::bad_alloc&) {  // outside the ranks: theirs have become errors already
    throw_environment_error({.where = "ring engine",
                             .expected = "memory for the ranks",
                             .actual = "out of memory",
                             .hint = "Use fewer tokens, heads or ranks"});
  }
}

#define RINGLAB_NATIVE_OF(Element)                                                                 \
  template NativeSummary run_native(const Problem&, const RunOptions&, const NativeEnds<Element>&, \
                                    const EngineParts&)
RINGLAB_NATIVE_OF(double);
RINGLAB_NATIVE_OF(float);
RINGLAB_NATIVE_OF(Half);
RINGLAB_NATIVE_OF(BFloat16);
#undef RINGLAB_NATIVE_OF

}  // namespace ringlab::ring
