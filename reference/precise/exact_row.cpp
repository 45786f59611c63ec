#include "reference/precise/exact_row.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/core/error.h"

namespace ringlab::precise {
namespace {

struct ScoredKey {
  Dyadic score;
  std::int64_t key = 0;
  bool kept = false;  ///< the sink is not
};

Dyadic exact_score(const Problem& problem, const RowPlace& at, std::int64_t key,
                   const std::vector<double>& q, const std::vector<double>& k) {
  Dyadic sum;
  for (std::size_t c = 0; c < q.size(); ++c) sum.add_product(q[c], k[c]);
  Dyadic score = sum * Dyadic(problem.scale);
  const std::vector<double>& slopes = problem.modifiers.alibi_slopes;
  if (slopes.empty()) return score;
  const auto distance = static_cast<double>(distance_of(problem.shape, at.query, key));
  score.add_product(-slopes[static_cast<std::size_t>(at.q_head)], distance);
  return score;
}

std::vector<ScoredKey> scored_keys(const AttentionInput& input, const RowPlace& at) {
  const Problem& problem = input.problem;
  std::vector<ScoredKey> scored;
  std::vector<double> q, k, v;
  for (const std::int64_t key : seen_keys(problem, at.query)) {
    read_channels(input.q, {at.batch, at.q_head, at.query}, "q", q);
    read_channels(input.k, {at.batch, at.kv_head, key}, "k", k);
    read_channels(input.v, {at.batch, at.kv_head, key}, "v", v);
    scored.push_back({exact_score(problem, at, key, q, k), key, is_kept(problem, at, key)});
  }
  return scored;
}

}  // namespace

void refuse_softcap(const Problem& problem) {
  if (problem.modifiers.softcap == 0) return;
  throw_usage_error({.where = "correct rounding",
                     .expected = "scores that are exact numbers",
                     .actual = "soft-capping, softcap " + std::to_string(problem.modifiers.softcap),
                     .hint =
                         "With tanh in the scores nobody knows how to tell a tie from a near "
                         "tie. The double-double tier takes soft-capping, with an error bound."});
}

Dyadic kept_sum(const AttentionInput& input, const RowPlace& place, const ScoreGroup& group,
                std::int64_t channel) {
  Dyadic sum;
  for (const std::int64_t key : group.kept_keys) {
    sum += Dyadic(input.v(place.batch, place.kv_head, key, channel));
  }
  return sum;
}

ExactRow exact_row(const AttentionInput& input, const RowPlace& place) {
  refuse_softcap(input.problem);
  ExactRow row{.place = place, .groups = {}};
  std::vector<ScoredKey> scored = scored_keys(input, place);
  const std::vector<double>& sinks = input.problem.modifiers.sinks;
  if (scored.empty()) return row;
  if (!sinks.empty()) {
    scored.push_back({Dyadic(sinks[static_cast<std::size_t>(place.q_head)]), -1, false});
  }
  std::ranges::stable_sort(
      scored, [](const ScoredKey& a, const ScoredKey& b) { return compare(a.score, b.score) > 0; });
  for (ScoredKey& one : scored) {
    if (row.groups.empty() || compare(row.groups.back().score, one.score) != 0) {
      row.groups.push_back({.score = std::move(one.score), .terms = 0, .kept_keys = {}});
    }
    ++row.groups.back().terms;
    if (one.kept) row.groups.back().kept_keys.push_back(one.key);
  }
  return row;
}

}  // namespace ringlab::precise
