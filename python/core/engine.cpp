#include "python/core/engine.h"

#include <memory>
#include <utility>

#include "optimized/ring/engine.h"

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
  const std::vector<std::int64_t> list = tokens.to_list();
  auto packed = std::make_shared<Tensor<Element>>(view.extents);
  Element* next = packed->values().data();
  for_each_row(view.extents, [&](auto b, auto h, auto t) {
    next = copy_row(view, b, h, list[static_cast<std::size_t>(t)], next);
  });
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
void put_rows(const Tensor<Element>& rows, const Positions& tokens, Tensor<Element>& whole) {
  const std::vector<std::int64_t> list = tokens.to_list();
  const TensorView<const Element> from = rows.view();
  const TensorView<Element> to = whole.view();
  for_each_row(from.extents, [&](auto b, auto h, auto t) {
    copy_row(from, b, h, t, to.data + to.offset(b, h, list[static_cast<std::size_t>(t)], 0));
  });
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
      put_rows(rows, positions, whole);
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
EngineResults<Element> run_engine_on(const GivenInput& given, const RunOptions& options) {
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
  ring::Engine().run(given.problem, options, ends);
  return results;
}

template EngineResults<double> run_engine_on(const GivenInput&, const RunOptions&);
template EngineResults<float> run_engine_on(const GivenInput&, const RunOptions&);
template EngineResults<Half> run_engine_on(const GivenInput&, const RunOptions&);
template EngineResults<BFloat16> run_engine_on(const GivenInput&, const RunOptions&);

}  // namespace ringlab::python
