#include "cli/report/hop_map.h"

#include <algorithm>
#include <string>

#include "reference/core/layout.h"

namespace ringlab::report {
namespace {

constexpr std::size_t kMostTokensShown = 96;

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

nlohmann::ordered_json HopMap::json() const {
  const auto [least, most] = std::minmax({q_owner_.size(), k_owner_.size()});
  if (least == 0 || most > kMostTokensShown) return nullptr;
  std::vector<std::string> visible;
  for (std::size_t query = 0; query < q_owner_.size(); ++query) {
    std::string& row = visible.emplace_back();
    for (std::size_t key = 0; key < k_owner_.size(); ++key) {
      row += mask_.allows(static_cast<std::int64_t>(query), static_cast<std::int64_t>(key)) ? '1'
                                                                                            : '0';
    }
  }
  return {{"ranks", ranks_},
          {"direction", direction_ == RingDirection::next ? "next" : "previous"},
          {"query_ranks", q_owner_},
          {"key_ranks", k_owner_},
          {"visible", visible}};
}

nlohmann::ordered_json element_json(const verify::Element& element) {
  return {{"tensor", element.tensor},
          {"batch", element.batch},
          {"head", element.head},
          {"token", element.token},
          {"channel", element.channel}};
}

}  // namespace ringlab::report
