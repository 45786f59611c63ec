#include "cli/compare/pooled.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "property_tests/subject_list.h"
#include "stages/common/run_ranks.h"

namespace ringlab::cli {
namespace {

using stages::RankProblem;

constexpr int kMeans = 0;  // tag of the messages

std::int64_t groups_in(std::int64_t tokens, std::int64_t group) {
  return (tokens + group - 1) / group;
}

bool is_causal(const Problem& problem) { return !problem.mask.terms().empty(); }

/// True if `rank` sees tokens of `other`, in a contiguous layout.
bool sees(const Problem& problem, int rank, int other) {
  return other < rank || (other > rank && !is_causal(problem));
}

/// Appends the means of groups of tokens, in the order of (batch, heads, groups, channels).
template <class Element>
void append_means(const TensorView<const Element>& rows, std::int64_t group,
                  std::vector<Element>& means) {
  Extents extents = rows.extents;
  extents.tokens = groups_in(rows.extents.tokens, group);
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    const std::int64_t first = t * group, end = std::min(first + group, rows.extents.tokens);
    double sum = 0;
    for (std::int64_t token = first; token < end; ++token) {
      sum += static_cast<double>(rows(b, h, token, c));
    }
    means.push_back(static_cast<Element>(sum / static_cast<double>(end - first)));
  });
}

/// Means received from each other rank, K and then V; empty for ranks that are not seen.
template <class Element>
std::vector<std::vector<Element>> exchange_means(RankProblem<Element>& r, std::int64_t group) {
  std::vector<Element> mine;
  append_means<Element>(r.k, group, mine);
  append_means<Element>(r.v, group, mine);
  const Shape& s = r.problem.shape;
  const std::int64_t numbers = s.batch * s.kv_heads * (s.head_dim + s.v_dim);
  std::vector<std::vector<Element>> arrived(static_cast<std::size_t>(r.ranks()));
  std::vector<Request> posted;
  for (int other = 0; other < r.ranks(); ++other) {
    if (sees(r.problem, other, r.rank())) {
      posted.push_back(r.network.post_send(other, kMeans, bytes_of(mine.data(), std::ssize(mine))));
    }
    if (!sees(r.problem, r.rank(), other)) continue;
    std::vector<Element>& from = arrived[static_cast<std::size_t>(other)];
    from.resize(
        static_cast<std::size_t>(numbers * groups_in(r.kv_layout.positions(other).size(), group)));
    posted.push_back(
        r.network.post_receive(other, kMeans, writable_bytes_of(from.data(), std::ssize(from))));
  }
  for (const Request request : posted) r.network.wait(request);
  return arrived;
}

/// Keys and values that a rank computes with: means of chunks that it sees, then its own. An extra
/// channel, which is 1 in queries, weighs a mean by the number of its tokens.
class SeenKeys {
 public:
  SeenKeys(const Problem& problem, std::int64_t tokens)
      : problem_(problem),
        k_({problem.shape.batch, problem.shape.kv_heads, tokens, problem.shape.head_dim + 1}),
        v_({problem.shape.batch, problem.shape.kv_heads, tokens, problem.shape.v_dim}) {}

  /// Appends the means of groups of `group` tokens; the groups hold `count` tokens together.
  template <class Element>
  void append(const TensorView<const Element>& k, const TensorView<const Element>& v,
              std::int64_t group, std::int64_t count) {
    for_each_row(k.extents, [&](auto b, auto h, auto t) {
      double* const end = copy_row(k, b, h, t, &k_(b, h, filled_ + t, 0));
      const double weight = static_cast<double>(std::min(group, count - t * group));
      *end = round_to(problem_.dtype, std::log(weight) / problem_.scale);
      copy_row(v, b, h, t, &v_(b, h, filled_ + t, 0));
    });
    filled_ += k.extents.tokens;
  }
  TensorView<const double> k() const { return k_.view(); }
  TensorView<const double> v() const { return v_.view(); }

 private:
  const Problem& problem_;
  Tensor<double> k_, v_;
  std::int64_t filled_ = 0;
};

template <class Element>
SeenKeys seen_keys(RankProblem<Element>& r, std::int64_t group) {
  const std::vector<std::vector<Element>> arrived = exchange_means(r, group);
  const auto groups_of = [&](int rank) {
    return groups_in(r.kv_layout.positions(rank).size(), group);
  };
  std::int64_t tokens = r.k.extents.tokens;
  for (int other = 0; other < r.ranks(); ++other) {
    if (sees(r.problem, r.rank(), other)) tokens += groups_of(other);
  }
  SeenKeys seen(r.problem, tokens);
  Extents k = r.k.extents, v = r.v.extents;
  for (int other = 0; other < r.ranks(); ++other) {
    const std::vector<Element>& means = arrived[static_cast<std::size_t>(other)];
    if (means.empty()) continue;
    k.tokens = v.tokens = groups_of(other);
    seen.append<Element>(dense_view(means.data(), k), dense_view(means.data() + k.size(), v), group,
                         r.kv_layout.positions(other).size());
  }
  seen.append<Element>(r.k, r.v, 1, r.k.extents.tokens);
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Element)) *
                             (seen.k().extents.size() + seen.v().extents.size());
  r.work.hold_kv(bytes);
  r.memory.add(bytes);
  return seen;
}

template <class Element>
void attend(RankProblem<Element>& r, std::int64_t group) {
  const SeenKeys seen = seen_keys(r, group);
  Problem mine = r.problem;
  mine.shape.q_tokens = r.q.extents.tokens;
  mine.shape.kv_tokens = seen.k().extents.tokens;
  mine.shape.head_dim += 1;
  if (mine.shape.q_tokens == 0) return;
  mine.mask = r.problem.mask.bind(mine.shape.q_tokens, mine.shape.kv_tokens);
  Tensor<double> q(mine.shape.q(), 1.0);
  for_each_row(q.extents(),
               [&](auto b, auto h, auto t) { copy_row(r.q, b, h, t, &q(b, h, t, 0)); });
  const verify::Subject engine = verify::engine_subject();
  const RunResult result =
      engine.run({mine, q.view(), seen.k(), seen.v()},
                 {.tile_queries = engine.tile_queries, .tile_keys = engine.tile_keys});
  r.memory.add(result.ranks.front().peak_bytes);
  r.work.visit(r.rank(), 0, mine.mask.count_all());
  for_each_row(r.out.extents, [&](auto b, auto h, auto t) {
    copy_row(result.output.out.view(), b, h, t, r.out.data + r.out.offset(b, h, t, 0));
    copy_row(result.output.lse.view(), b, h, t, r.lse.data + r.lse.offset(b, h, t, 0));
  });
}

/// One message to each rank that sees this one's tokens.
StatedCosts pooled_costs(const Problem& problem, const RunOptions& options, int rank,
                         std::int64_t group) {
  const Shape& s = problem.shape;
  const Layout keys = make_layout(options, s.kv_tokens, options.kv_layout);
  StatedCosts costs;
  for (int other = 0; other < options.ranks; ++other) {
    costs.sent_messages += sees(problem, other, rank);
  }
  costs.sent_bytes = costs.sent_messages * groups_in(keys.positions(rank).size(), group) * s.batch *
                     s.kv_heads * (s.head_dim + s.v_dim) * dtype_info(problem.dtype).bytes;
  return costs;
}

}  // namespace

bool can_be_pooled(const Problem& problem) {
  const std::string mask = problem.mask.text();
  const bool is_known = mask == "full" || mask == "causal";
  return is_known && problem.scale != 0 && problem.shape.q_tokens == problem.shape.kv_tokens;
}

verify::Subject pooled_subject(std::int64_t group) {
  verify::Subject subject;
  subject.name = "pooled";
  subject.run = [group](const AttentionInput& input, const RunOptions& options) {
    return stages::run_ranks(input, options,
                             [group]<class Element>(RankProblem<Element>& r) { attend(r, group); });
  };
  subject.profile = verify::engine_subject().profile;
  subject.costs = [group](const Problem& problem, const RunOptions& options, int rank) {
    return pooled_costs(problem, options, rank, group);
  };
  return subject;
}

}  // namespace ringlab::cli
