#include "reference/model/closed_forms.h"

#include <algorithm>
#include <limits>

namespace ringlab::model {
namespace {

/// Blocks that differ by more are not alike: the largest over the smallest.
constexpr double kMostApart = 1.5;

}  // namespace

double hidden_from_tokens(const Work& work, const Machine& machine, const LinkSpeed& link,
                          double pair_share) {
  const auto bytes = static_cast<double>(work.kv_bytes_per_token + work.sum_bytes_per_token);
  const auto flops = static_cast<double>(work.flops_per_pair);
  return bytes / link.bytes_per_s * machine.flops(work.pass) / (pair_share * flops);
}

std::optional<double> share_of_blocks(const NeedMatrix& need, std::int64_t q_tokens,
                                      std::int64_t kv_tokens) {
  const int ranks = need.ranks();
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int owner = 0; owner < ranks; ++owner) {
      if (rank == owner) continue;
      const auto pairs = static_cast<double>(need.pairs(rank, owner));
      least = std::min(least, pairs);
      most = std::max(most, pairs);
    }
  }
  if (ranks == 1 || least == 0 || most > kMostApart * least) return std::nullopt;
  const double whole = static_cast<double>(q_tokens) * static_cast<double>(kv_tokens);
  return least * ranks * ranks / whole;
}

}  // namespace ringlab::model
