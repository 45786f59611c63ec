// Who holds the tokens of a small case, and when a ring brings a key to a query.
#include "cli/report/maps.h"

namespace ringlab::report {
namespace {

// The rank that holds each token.
std::vector<int> owners_of(const Layout& layout) {
  std::vector<int> owner(static_cast<std::size_t>(layout.tokens()), 0);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const std::int64_t token : layout.positions(rank).to_list()) {
      owner[static_cast<std::size_t>(token)] = rank;
    }
  }
  return owner;
}

}  // namespace

HopMap::HopMap(const verify::Case& c)
    : mask_(verify::make_problem(c).mask), ranks_(c.ranks), direction_(c.direction) {
  const RunOptions options = verify::make_options(c);
  q_owner_ = owners_of(make_layout(options, c.shape.q_tokens, options.q_layout));
  k_owner_ = owners_of(make_layout(options, c.shape.kv_tokens, options.kv_layout));
}

int HopMap::hop(std::int64_t query, std::int64_t key) const {
  if (!mask_.allows(query, key)) return -1;
  const int ahead = query_rank(query) - key_rank(key);
  const int hop = direction_ == RingDirection::next ? ahead : -ahead;
  return (hop % ranks_ + ranks_) % ranks_;
}

}  // namespace ringlab::report
