#include "property_tests/diagnosis/model/model.h"

#include <algorithm>
#include <cmath>

#include "reference/attention/modified.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {
namespace {

/// The rank that holds each token.
std::vector<int> token_ranks(const Layout& layout) {
  std::vector<int> ranks(static_cast<std::size_t>(layout.tokens()));
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const std::int64_t token : layout.positions(rank).to_list()) {
      ranks[static_cast<std::size_t>(token)] = rank;
    }
  }
  return ranks;
}

/// The chunks that a schedule has every rank compute on, in order. Those without visible pairs are
/// included by rings that skip nothing; they change no sum, so they stand at their places here,
/// too.
std::vector<std::vector<int>> visited_chunks(const Trial& trial) {
  const int ranks = trial.options.ranks;
  NeedMatrix need(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int owner = 0; owner < ranks; ++owner) need.set(rank, owner, 1);
  }
  const Schedule schedule = build_schedule(schedule_spec(trial.options), need, Pass::forward);
  std::vector<std::vector<int>> visits;
  for (const RankSchedule& program : schedule.ranks) {
    std::vector<int>& owners = visits.emplace_back();
    for (const Operation& operation : program.operations) {
      if (operation.verb == Verb::compute) owners.push_back(operation.owner);
    }
  }
  return visits;
}

Extents pair_extents(const Shape& shape) {
  return {shape.batch, shape.q_heads, shape.q_tokens, shape.kv_tokens};
}

}  // namespace

int Model::hop(std::int64_t i, std::int64_t j) const {
  const std::vector<int>& owners = visits[static_cast<std::size_t>(rank_of_query(i))];
  const auto found = std::ranges::find(owners, rank_of_key(j));
  return found == owners.end() ? -1 : static_cast<int>(found - owners.begin());
}

int Model::hops(std::int64_t i) const {
  return static_cast<int>(visits[static_cast<std::size_t>(rank_of_query(i))].size());
}

double scaled_product(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i,
                      std::int64_t j) {
  const Trial& trial = model.trial;
  const std::int64_t query = model.query_read[model.pair(i, j)];
  const std::int64_t row = model.key_read[model.pair(i, j)];
  if (trial.shape().head_dim == 0) return 0;
  const double* const q = &trial.data.q(b, h, query, 0);
  const double* const k = &trial.data.k(b, h / trial.group(), row, 0);
  long double dot = 0;
  for (std::int64_t c = 0; c < trial.shape().head_dim; ++c) {
    dot += static_cast<long double>(q[c]) * k[c];
  }
  return static_cast<double>(trial.problem.scale * dot);
}

// Positions are aligned bottom right: query 0 stands at key kv_tokens - q_tokens.
double alibi_bias(const Model& model, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::vector<double>& slopes = model.trial.problem.modifiers.alibi_slopes;
  if (slopes.empty()) return 0;
  const std::int64_t position = i + model.shape().kv_tokens - model.shape().q_tokens;
  return slopes[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(position - j));
}

void score_again(Model& model) {
  const double cap = model.trial.problem.modifiers.softcap;
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    const double scaled = scaled_product(model, b, h, i, j);
    const double capped = cap == 0 ? scaled : cap * std::tanh(scaled / cap);
    model.score(b, h, i, j) = capped - alibi_bias(model, h, i, j);
  });
}

bool is_of_another_rank(const Model& model, std::int64_t i, std::int64_t j) {
  return model.rank_of_query(i) != model.rank_of_key(j);
}

void read_copies(Model& model, const ElementMap& copy_k, const ElementMap& copy_v,
                 const OfPairs& reads_copy) {
  const std::int64_t keys = model.shape().kv_tokens, held = model.trial.data.k.extents().tokens;
  const auto with_copies = [&](const Tensor<double>& x, const ElementMap& copy) {
    Extents twice = x.extents();
    twice.tokens *= 2;
    return mapped(Tensor<double>(twice), [&](double, auto b, auto h, auto t, auto c) {
      const std::int64_t n = x.extents().tokens;
      return t < n ? x(b, h, t, c) : copy(x(b, h, t - n, c), b, h, (t - n) % keys, c);
    });
  };
  model.trial.data.k = with_copies(model.trial.data.k, copy_k);
  model.trial.data.v = with_copies(model.trial.data.v, copy_v);
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!reads_copy(model, i, j)) continue;
      model.key_read[model.pair(i, j)] += held;
      model.value_read[model.pair(i, j)] += held;
    }
  }
  score_again(model);
}

void for_each_pair(
    const Model& model,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& edit) {
  for_each_index(pair_extents(model.shape()), edit);
}

void count_pairs(Model& model, const std::function<double(std::int64_t, std::int64_t)>& times) {
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    const double factor = times(i, j);
    model.in_acc(b, h, i, j) *= factor;
    model.in_sum(b, h, i, j) *= factor;
  });
}

void see_pairs(Model& model, const std::function<bool(std::int64_t, std::int64_t)>& visible) {
  const Dropout dropout(model.trial.problem.modifiers);
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    const bool seen = visible(i, j);
    model.in_acc(b, h, i, j) = seen ? dropout.factor(b, h, i, j) : 0;
    model.in_sum(b, h, i, j) = seen ? 1 : 0;
  });
}

Model make_model(Trial trial, const NumericsProfile& profile) {
  Model model{.trial = std::move(trial),
              .profile = profile,
              .q_rank = {},
              .k_rank = {},
              .visits = {},
              .score = {},
              .in_acc = {},
              .in_sum = {},
              .sink_counts = {},
              .query_read = {},
              .key_read = {},
              .value_read = {}};
  const Shape& shape = model.shape();
  if (!model.trial.problem.modifiers.sinks.empty()) ++model.profile.max_rescales;
  const RunOptions& options = model.trial.options;
  model.q_rank = token_ranks(make_layout(options, shape.q_tokens, options.q_layout));
  model.k_rank = token_ranks(make_layout(options, shape.kv_tokens, options.kv_layout));
  model.visits = visited_chunks(model.trial);
  model.score = model.in_acc = model.in_sum = Tensor<double>(pair_extents(shape));
  model.sink_counts =
      Tensor<double>(shape.lse(), model.trial.problem.modifiers.sinks.empty() ? 0 : 1);
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      model.query_read.push_back(i);
      model.key_read.push_back(j);
    }
  }
  model.value_read = model.key_read;
  score_again(model);
  const Mask mask = model.trial.problem.mask;
  see_pairs(model, [&](auto i, auto j) { return mask.allows(i, j); });
  return model;
}

}  // namespace ringlab::verify
