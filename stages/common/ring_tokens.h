// The tokens of all ranks, as the one thread that drives a run on devices knows them.
#pragma once

#include <utility>
#include <vector>

#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// The treatment of chunks that the queries see nothing of.
enum class EmptyBlocks { computed, skipped };

/// The tokens of the rows of a rank's queries and of everybody's keys. The host knows those of all
/// chunks, so that positions do not travel with them.
class RingTokens {
 public:
  RingTokens(const Mask& mask, Positions queries, std::vector<Positions> keys, EmptyBlocks empty)
      : queries_(std::move(queries)), keys_(std::move(keys)), empty_(empty) {
    for (const Positions& held : keys_) coverage_.push_back(mask.classify(queries_, held));
  }

  const Positions& queries() const { return queries_; }
  int owners() const { return static_cast<int>(keys_.size()); }
  const Positions& keys(int owner) const { return keys_[static_cast<std::size_t>(owner)]; }
  bool skips(int owner) const {
    return empty_ == EmptyBlocks::skipped && coverage(owner) == Coverage::empty;
  }
  bool sees_all(int owner) const { return coverage(owner) == Coverage::full; }

 private:
  Coverage coverage(int owner) const { return coverage_[static_cast<std::size_t>(owner)]; }

  Positions queries_;
  std::vector<Positions> keys_;     // by owner
  std::vector<Coverage> coverage_;  // by owner: what the queries see of its keys
  EmptyBlocks empty_;
};

/// The tokens as the layouts of the run have them.
template <class Element>
RingTokens tokens_of(const RankProblem<Element>& r, EmptyBlocks empty) {
  std::vector<Positions> keys;
  for (int owner = 0; owner < r.ranks(); ++owner) keys.push_back(r.kv_layout.positions(owner));
  return {r.problem.mask, r.q_layout.positions(r.rank()), std::move(keys), empty};
}

}  // namespace ringlab::stages
