// The state of an online softmax over one row, and the rules by which two states become one.
#pragma once

#include <cstdint>
#include <vector>

#include "property_tests/diagnosis/model/model.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {

/// A state (row_max, row_sum, acc) as sums over keys: acc = Σ e^log_acc v, row_sum = Σ e^log_sum.
struct RowState {
  struct Term {
    std::int64_t key;
    double log_acc, log_sum;
    double times_acc = 1, times_sum = 1;  ///< a number in place of a weight; it may be negative
  };
  double max = kNoScore;
  std::vector<Term> terms;

  double log_row_sum() const;
};

/// The maxima of two states and the maximum of both.
struct Maxima {
  double mine, theirs, top;
};
/// The logarithm of a factor, or a maximum.
using OfMaxima = double (*)(const Maxima&);

double keep_factor(const Maxima& m);   ///< log of e^(mine - top)
double weigh_factor(const Maxima& m);  ///< log of e^(theirs - top)
double top_of(const Maxima& m);

/// Everything that a merge computes; as it is here, it is right (Dao 2023, section 2.3).
struct MergeRule {
  OfMaxima keep_acc = keep_factor, keep_sum = keep_factor;      ///< factors of mine
  OfMaxima weigh_acc = weigh_factor, weigh_sum = weigh_factor;  ///< factors of theirs
  OfMaxima kept_max = top_of;                                   ///< the maximum that is stored
  bool asks_the_maximum = true;    ///< a maximum of -inf is a row that sees nothing
  bool divides_each_step = false;  ///< acc by row_sum, after each merge
  int divisions_at_end = 1;        ///< of acc by row_sum
  bool scores_in_acc = false, scores_in_sum = false;  ///< the maximum of what is added, as weight
  /// Factors of mine applied once more at each key of what is added, to all that was added before.
  bool keeps_acc_by_key = false, keeps_sum_by_key = false;
};

/// The order in which the states of pieces are merged.
struct Walk {
  KeyOrder order = KeyOrder::by_owner;
  Piece piece = Piece::key;
  bool in_a_tree = false;       ///< neighbours, then pairs of neighbours; else one after the other
  bool skips_unseen = false;    ///< pieces of which the row sees no key are no states
  bool from_the_first = false;  ///< the first piece is the state that others are added to
  std::int64_t tile = 0;        ///< keys of a tile; 0: those of the run
};
/// The walks of implementations: by key, tile and chunk, in both orders, and a tree over chunks; and
/// by tiles of sizes that kernels have, who choose for themselves.
const std::vector<Walk>& walks();

/// Lets all rows be summed up by this rule. Returns what it adds to each lse (b, h, i, 1).
Tensor<double> merge_by(Model& model, const Walk& walk, const MergeRule& rule);

}  // namespace ringlab::verify
