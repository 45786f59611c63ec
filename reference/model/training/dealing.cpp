#include "reference/model/training/dealing.h"

#include "reference/model/closed_forms.h"
#include "reference/model/training/amounts.h"

namespace ringlab::model {

double dealing_seconds(const Problem& problem, int by_heads, const Machine& seen) {
  if (by_heads == 1) return 0;
  const auto all = static_cast<double>(deal_heads_bytes(problem, by_heads));
  const double to_each = all / by_heads / (by_heads - 1);
  return 2 * exchange_seconds(to_each / 2, by_heads, seen);  // there and back
}

double dealt_bytes(const Problem& problem, int by_heads) {
  if (by_heads == 1) return 0;
  const Shape& s = problem.shape;
  const std::int64_t numbers =
      s.batch * s.q_tokens / by_heads * (s.q_heads + s.kv_heads) * (s.head_dim + s.v_dim);
  return kActivationBytes * static_cast<double>(numbers);
}

}  // namespace ringlab::model
