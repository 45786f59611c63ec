// Places of the ranks of a run: threads or simulated ranks of this process, one rank of several
// processes. Streams of this process's devices, and processes with a device each: device_engine.h.
#pragma once

#include <variant>

#include "optimized/ring/ends.h"
#include "optimized/ring/engine_parts.h"
#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// A run whose problem, options and elements have been checked; `ends` checks the rows it gives.
template <class Element>
struct CheckedRun {
  const Problem& problem;
  const RunOptions& options;
  Ends<Element> ends;
  const EngineParts& parts;
};
using AnyRun =
    std::variant<CheckedRun<double>, CheckedRun<float>, CheckedRun<Half>, CheckedRun<BFloat16>>;

class Place {
 public:
  virtual ~Place() = default;
  /// Throws for problems and options that ranks there cannot run. The engine calls it before run().
  virtual void check(const Problem& problem, const RunOptions& options) const = 0;
  virtual RunSummary run(const AnyRun& run) const = 0;
};

/// options.ranks ranks inside this process, on its processors: threads, or simulated, as
/// options.transport says. No rank holds the whole of any tensor: each holds its rows, and beside
/// them the memory of engine_costs().
class InProcess final : public Place {
 public:
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;
};

/// One rank of `network`, which is a thread or, as with MPI, a process of its own. All ranks run
/// the same problem and options, which the agreement checks before any data moves.
class OneRank final : public Place {
 public:
  explicit OneRank(Communicator& network) : network_(network) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  Communicator& network_;
};

}  // namespace ringlab::ring
