// The engine on tensors in their own types: what is not asked for in doubles is not held in them.
//
// This is the form in which attention is computed on one's own buffers. A rank gives its rows of q,
// k and v, in the order of its layout, and gets its rows of out and lse:
//
//     NativeResult<BFloat16> mine = run_native_rank<BFloat16>(
//         problem, options, {.q = q.view(), .k = k.view(), .v = v.view()}, network);
//
// and all ranks inside this process, each asking for its rows and handing over its results:
//
//     run_native<BFloat16>(problem, options,
//                          {.source = [&](const RankPlace& place) { return my_rows(place); },
//                           .sink = [&](const RankPlace& place, NativeResult<BFloat16>&& result) {
//                             keep(place.rank, std::move(result));
//                           }});
//
// Elements are double, float, Half and BFloat16; problem.dtype must name the same one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "optimized/ring/engine_parts.h"
#include "reference/core/dtype.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// One rank's rows: q and dout (batch, q_heads, its queries, channels), k and v (batch, kv_heads,
/// its keys, channels). Dense views are read, and sent, where they lie; others are packed first.
template <class Element>
struct NativeShard {
  TensorView<const Element> q, k, v;
  std::optional<TensorView<const Element>> dout = {};  ///< where gradients are wanted
  std::shared_ptr<const void> owner = {};              ///< kept while the views are in use
};

template <class Element>
struct NativeGradients {
  Tensor<Element> dq, dk, dv;
};

/// One rank's results, in the extents of its rows. lse (batch, q_heads, its queries, 1) is in
/// natural units; of rows that see nothing their sink, or -inf.
template <class Element>
struct NativeResult {
  Tensor<Element> out;
  Tensor<Accumulator<Element>> lse;
  std::optional<NativeGradients<Element>> gradients = {};  ///< when dout was given
  RankStats stats = {};
  double seconds = 0;
};

/// One rank of `network`, which is a thread or a process of its own. All ranks call it with the
/// same problem and options; that they do is agreed on before any data moves. Errors as run_engine.
template <class Element>
NativeResult<Element> run_native_rank(const Problem& problem, const RunOptions& options,
                                      const NativeShard<Element>& shard, Communicator& network,
                                      const EngineParts& parts = {});

/// A rank, and which tokens its rows are.
struct RankPlace {
  int rank = 0;
  const Positions& queries;
  const Positions& keys;
};

/// Where the ranks' rows come from and where their results go. Both are called by the ranks, from
/// threads of their own, at the same time. When a rank fails the results of others may have been
/// handed over already: they are to be thrown away.
template <class Element>
struct NativeEnds {
  std::function<NativeShard<Element>(const RankPlace&)> source;
  std::function<void(const RankPlace&, NativeResult<Element>&&)> sink;
};

/// What the ranks did.
struct NativeSummary {
  std::vector<RankStats> ranks;
  std::int64_t leftover_messages = 0;
  double seconds = 0;  ///< of the slowest rank, source and sink excluded
  /// Of run_on_devices(): by the clock of the first device, from before the first operation until
  /// all have ended.
  double device_seconds = 0;
};

/// options.ranks in-process ranks. Nobody holds the whole of any tensor: each rank holds its rows,
/// and besides them what engine_costs says.
template <class Element>
NativeSummary run_native(const Problem& problem, const RunOptions& options,
                         const NativeEnds<Element>& ends, const EngineParts& parts = {});

}  // namespace ringlab::ring
