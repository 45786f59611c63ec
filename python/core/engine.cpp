#include "python/core/engine.h"

#include <memory>
#include <utility>

#include "optimized/ring/engine.h"
#include "reference/core/shards.h"

namespace ringlab::python {
namespace {

/// Rows of the caller's array, and the memory they were packed into if they were.
template <class Element>
struct CallerRows {
  std::shared_ptr<Tensor<Element>> packed = {};
  TensorView<const Element> view;
};

/// The caller's rows of these tokens: one run of them, however far apart, is a view with other
/// strides.
template <class Element>
CallerRows<Element> rows_of_array(const GivenArray& array, const Positions& tokens) {
  TensorView<const Element> view = array.view<Element>();
  view.extents.tokens = tokens.size();
  if (tokens.runs().size() == 1) {
    view.data += tokens.runs()[0].first * view.strides.token;
    view.strides.token *= tokens.runs()[0].stride;
  }
  if (tokens.runs().size() <= 1) return {.view = view};
  auto packed = std::make_shared<Tensor<Element>>(shard_of<Element>(array.view<Element>(), tokens));
  return {.packed = packed, .view = std::as_const(*packed).view()};
}

template <class Element>
ring::RankRows<Element> rows_of_rank(const GivenInput& given, const ring::RankTokens& tokens) {
  const auto q = rows_of_array<Element>(given.q, tokens.queries);
  const auto k = rows_of_array<Element>(given.k, tokens.keys);
  const auto v = rows_of_array<Element>(given.v, tokens.keys);
  ring::RankRows<Element> rows{.q = q.view, .k = k.view, .v = v.view};
  std::shared_ptr<Tensor<Element>> dout_rows;
  if (given.dout) {
    const auto dout = rows_of_array<Element>(*given.dout, tokens.queries);
    rows.dout = dout.view;
    dout_rows = dout.packed;
  }
  rows.owner = std::make_shared<std::vector<std::shared_ptr<Tensor<Element>>>>(
      std::initializer_list<std::shared_ptr<Tensor<Element>>>{q.packed, k.packed, v.packed,
                                                              dout_rows});
  return rows;
}

template <class Element>
EngineResults<Element> room_for(const GivenInput& given) {
  const Shape& shape = given.problem.shape;
  EngineResults<Element> results{.out = Tensor<Element>(shape.out()),
                                 .lse = Tensor<Accumulator<Element>>(shape.lse())};
  if (!given.dout) return results;
  results.dq = Tensor<Element>(shape.q());
  results.dk = Tensor<Element>(shape.k());
  results.dv = Tensor<Element>(shape.v());
  return results;
}

/// Writes the rows of one rank, which may be all there are.
template <class Element>
void keep(ring::RankResult<Element>&& mine, const ring::RankTokens& tokens, bool is_all,
          EngineResults<Element>& results) {
  const auto put = [is_all](auto&& rows, const Positions& positions, auto& whole) {
    if (is_all) {
      whole = std::move(rows);
    } else {
      unshard(rows, positions, whole);
    }
  };
  put(std::move(mine.out), tokens.queries, results.out);
  put(std::move(mine.lse), tokens.queries, results.lse);
  if (!mine.gradients) return;
  put(std::move(mine.gradients->dq), tokens.queries, *results.dq);
  put(std::move(mine.gradients->dk), tokens.keys, *results.dk);
  put(std::move(mine.gradients->dv), tokens.keys, *results.dv);
}

}  // namespace

template <class Element>
EngineResults<Element> run_engine_on(const GivenInput& given, const RunOptions& options,
                                     const ring::EngineParts& parts) {
  EngineResults<Element> results = room_for<Element>(given);
  // The rows of a single rank are all rows, in their order.
  const bool is_all = options.ranks == 1;
  const ring::Ends<Element> ends = {
      .source =
          [&](const ring::RankTokens& tokens) { return rows_of_rank<Element>(given, tokens); },
      .sink =
          [&](const ring::RankTokens& tokens, ring::RankResult<Element>&& mine) {
            keep(std::move(mine), tokens, is_all, results);
          }};
  ring::Engine(parts).run(given.problem, options, ends);
  return results;
}

template EngineResults<double> run_engine_on(const GivenInput&, const RunOptions&,
                                             const ring::EngineParts&);
template EngineResults<float> run_engine_on(const GivenInput&, const RunOptions&,
                                            const ring::EngineParts&);
template EngineResults<Half> run_engine_on(const GivenInput&, const RunOptions&,
                                           const ring::EngineParts&);
template EngineResults<BFloat16> run_engine_on(const GivenInput&, const RunOptions&,
                                               const ring::EngineParts&);

}  // namespace ringlab::python
