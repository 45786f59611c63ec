// Attention written out: every number between the inputs and the answer as a plain array, so that
// one mistake is one edit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "property_tests/laws/trial.h"

namespace ringlab::verify {

/// All numbers that an implementation computes before the sums. Arrays over pairs are (batch,
/// q_heads, query, key); hidden pairs have scores, too, and count 0 times.
struct Model {
  Trial trial;  ///< the tensors that are read; edit them before make_model()
  NumericsProfile profile;
  std::vector<int> q_rank, k_rank;       ///< the rank of each token
  std::vector<std::vector<int>> visits;  ///< [rank]: owners of the chunks in the order of its hops
  Tensor<double> score;                  ///< modified scores
  Tensor<double> in_acc, in_sum;         ///< how often e^score counts in acc and in row_sum
  Tensor<double> sink_counts;            ///< (b, h, i, 1): how often the sink counts
  std::vector<std::int64_t> query_read, key_read, value_read;  ///< [query · keys + key]: rows read
  bool divides_empty_rows = false;                             ///< 0/0 in rows that see no key
  Tensor<double> added_to_lse = {};                            ///< (b, h, i, 1), or nothing

  const Shape& shape() const { return trial.problem.shape; }
  std::size_t pair(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * shape().kv_tokens + j);
  }
  int rank_of_query(std::int64_t i) const { return q_rank[static_cast<std::size_t>(i)]; }
  int rank_of_key(std::int64_t j) const { return k_rank[static_cast<std::size_t>(j)]; }
  /// The hop at which the rank of query i computes on the chunk of key j; -1: never.
  int hop(std::int64_t i, std::int64_t j) const;
  /// Hops of the rank of query i.
  int hops(std::int64_t i) const;
};

/// The right computation on these tensors.
Model make_model(Trial trial, const NumericsProfile& profile);

/// scale · q·k of a pair as it is read, for a scale of `scale`.
double scaled_product(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i,
                      std::int64_t j);
/// The bias that ALiBi subtracts.
double alibi_bias(const Model& model, std::int64_t h, std::int64_t i, std::int64_t j);
/// Computes the scores again, after edits of tensors, scale, modifiers or key_read.
void score_again(Model& model);
/// True for a pair (query, key) of this model.
using OfPairs = std::function<bool(const Model&, std::int64_t, std::int64_t)>;
bool is_of_another_rank(const Model& model, std::int64_t i, std::int64_t j);
/// Lets pairs, those of chunks of others if nothing is said, read keys and values from copies that
/// stand behind the originals, and behind earlier copies; scores again.
void read_copies(Model& model, const ElementMap& copy_k, const ElementMap& copy_v,
                 const OfPairs& reads_copy = is_of_another_rank);

/// Calls edit(b, h, i, j) for all pairs.
void for_each_pair(
    const Model& model,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& edit);
/// Multiplies how often pairs (i, j) of all heads count, in acc and in row_sum.
void count_pairs(Model& model, const std::function<double(std::int64_t, std::int64_t)>& times);
/// Makes these pairs visible, and no others.
void see_pairs(Model& model, const std::function<bool(std::int64_t, std::int64_t)>& visible);

/// A predicted answer, NaN where the answer is NaN, and how far a subject with this profile may be
/// from it; +inf where nothing can be said, not even that it is a number; NaN where it may be NaN.
struct Prediction {
  AttentionOutput output;
  ForwardTolerance allowed;
};
Prediction finish(const Model& model);

/// True when every number of `got` lies within the prediction; lse where it is compared.
enum class LseCompared { yes, no };
bool agrees(const Prediction& prediction, const AttentionOutput& got, LseCompared lse);
/// The same of the prediction of a model, of which no more rows are computed than it takes.
bool agrees(const Model& model, const AttentionOutput& got, LseCompared lse);
/// Numbers that miss the truth; those of them of which a prediction says nothing; and those of which
/// it says that they do, and how.
struct Foretold {
  std::size_t wrong = 0, unknown = 0, foretold = 0;

  Foretold& operator+=(const Foretold& more) {
    wrong += more.wrong;
    unknown += more.unknown;
    foretold += more.foretold;
    return *this;
  }
};
Foretold foretold(const Prediction& prediction, const Prediction& truth, const AttentionOutput& got,
                  LseCompared lse);

/// True when got lies within `allowed` of `wanted`: infinities equal themselves, NaN equals NaN.
/// A NaN in `allowed` lets got be NaN besides.
bool within(double got, double wanted, double allowed);
bool all_within(const Tensor<double>& got, const Tensor<double>& wanted,
                const Tensor<double>& allowed);

}  // namespace ringlab::verify
