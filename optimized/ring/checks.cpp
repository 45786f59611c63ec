#include "optimized/ring/checks.h"

#include <string>

#include "optimized/ring/dense_rows.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/options/option_table.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

template <class Element>
void check_rows(const Shape& shape, const RankRows<Element>& rows, const RankTokens& tokens) {
  const std::int64_t queries = tokens.queries.size(), keys = tokens.keys.size();
  check_extents("q of this rank", rows.q.extents, with_tokens(shape.q(), queries));
  check_extents("k of this rank", rows.k.extents, with_tokens(shape.k(), keys));
  check_extents("v of this rank", rows.v.extents, with_tokens(shape.v(), keys));
  if (!rows.dout) return;
  check_extents("do of this rank", rows.dout->extents, with_tokens(shape.out(), queries));
}

}  // namespace

void check_run(const Problem& problem, const RunOptions& options) {
  check_problem(problem);
  check_limits(options);
}

void check_dtype(DType elements, DType wanted) {
  if (elements == wanted) return;
  throw_usage_error({.where = "elements of the tensors",
                     .expected = std::string(dtype_info(wanted).name) + ", the problem's dtype",
                     .actual = std::string(dtype_info(elements).name)});
}

template <class Element>
Ends<Element> checked_ends(const Problem& problem, const Ends<Element>& ends) {
  return {.source =
              [&problem, source = ends.source](const RankTokens& tokens) {
                RankRows<Element> rows = source(tokens);
                check_rows(problem.shape, rows, tokens);
                return rows;
              },
          .sink = ends.sink};
}

template Ends<double> checked_ends(const Problem&, const Ends<double>&);
template Ends<float> checked_ends(const Problem&, const Ends<float>&);
template Ends<Half> checked_ends(const Problem&, const Ends<Half>&);
template Ends<BFloat16> checked_ends(const Problem&, const Ends<BFloat16>&);

}  // namespace ringlab::ring
