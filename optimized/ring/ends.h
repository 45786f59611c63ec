// Inputs and results of ranks: one rank's rows as views in their own type, its results, and the two
// ends of a run, the source of all ranks' rows and the sink of their results.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/layout.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// A rank, and the tokens of the whole sequence that its rows are.
struct RankTokens {
  int rank = 0;
  const Positions& queries;
  const Positions& keys;
};

/// One rank's rows, in the order of its layouts: q and dout (batch, q_heads, its queries,
/// channels), k and v (batch, kv_heads, its keys, channels). Dense views are read, and sent, where
/// they lie; other views are packed first.
template <class Element>
struct RankRows {
  TensorView<const Element> q, k, v;
  std::optional<TensorView<const Element>> dout = {};  ///< where gradients are wanted
  std::shared_ptr<const void> owner = {};              ///< kept while the views are in use
};

template <class Element>
struct RankGradients {
  Tensor<Element> dq, dk, dv;
};

/// One rank's results, in the extents of its rows. lse (batch, q_heads, its queries, 1) is in
/// natural units; for rows that see nothing it is their sink, or -inf.
template <class Element>
struct RankResult {
  Tensor<Element> out;
  Tensor<Accumulator<Element>> lse;
  std::optional<RankGradients<Element>> gradients = {};  ///< when dout was given
  RankStats stats = {};
  double seconds = 0;
};

/// The source of the ranks' rows and the sink of their results. Ranks that are threads call both at
/// the same time. When a rank fails, other ranks may have handed their results over already: these
/// are to be thrown away.
template <class Element>
struct Ends {
  std::function<RankRows<Element>(const RankTokens&)> source;
  std::function<void(const RankTokens&, RankResult<Element>&&)> sink;
};

/// Statistics of the ranks that ran in this process.
struct RunSummary {
  std::vector<RankStats> ranks;  ///< in their order
  std::int64_t leftover_messages = 0;
  double seconds = 0;  ///< of the slowest rank, source and sink excluded
  /// Time by the clock of the first device, from before the first operation until all have ended;
  /// 0 where ranks are not streams of this process.
  double device_seconds = 0;
};

/// Rows that own their tensors.
template <class Element>
RankRows<Element> owned_rows(Tensor<Element> q, Tensor<Element> k, Tensor<Element> v,
                             std::optional<Tensor<Element>> dout = {}) {
  struct Owned {
    Tensor<Element> q, k, v;
    std::optional<Tensor<Element>> dout;
  };
  const auto owned = std::make_shared<const Owned>(
      Owned{std::move(q), std::move(k), std::move(v), std::move(dout)});
  RankRows<Element> rows{.q = owned->q.view(), .k = owned->k.view(), .v = owned->v.view()};
  if (owned->dout) rows.dout = owned->dout->view();
  rows.owner = owned;
  return rows;
}

/// The tensors that `make` makes of each of `rows`, as rows that own them.
template <class To, class From, class Make>
RankRows<To> remade_rows(const RankRows<From>& rows, const Make& make) {
  std::optional<Tensor<To>> dout;
  if (rows.dout) dout = make(*rows.dout);
  return owned_rows<To>(make(rows.q), make(rows.k), make(rows.v), std::move(dout));
}

}  // namespace ringlab::ring
