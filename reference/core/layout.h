// Layouts: which global positions each rank holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/core/kinds.h"
#include "reference/core/positions.h"

namespace ringlab {

/// contiguous: rank r holds one block. zigzag: the tokens are cut into 2P chunks and rank r holds
/// chunks r and 2P-1-r, which balances causal work exactly (Llama 3, ring-flash-attention).
/// striped: rank r holds tokens r, r+P, r+2P, … (Striped Attention, Brandon et al. 2023).
enum class LayoutKind { contiguous, striped, zigzag };

constexpr std::string_view layout_name(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::contiguous:
      return "contiguous";
    case LayoutKind::striped:
      return "striped";
    case LayoutKind::zigzag:
      return "zigzag";
  }
  return "";
}
inline constexpr auto kLayoutKinds = all_kinds<LayoutKind, layout_name>();
LayoutKind parse_layout(std::string_view name);  ///< anything else is a usage error

/// A partition of 0 … tokens-1 over ranks. Chunk lengths differ by at most one when ranks (or 2P)
/// does not divide tokens: the first tokens % ranks chunks (of the 2P, for zigzag) hold one more.
/// With more ranks than tokens some ranks hold nothing. Copies cost O(ranks), not O(tokens).
class Layout {
 public:
  Layout() = default;  ///< no ranks
  // [answer: Layout(LayoutKind]
  /// Usage error when ranks < 1, input error when tokens < 0.
  Layout(LayoutKind kind, std::int64_t tokens, int ranks);
  // end [answer: Layout(LayoutKind]
  /// A contiguous layout with these chunk lengths, one per rank, zeros allowed. Input error for
  /// negative lengths, usage error for none at all.
  static Layout with_lengths(const std::vector<std::int64_t>& lengths);
  /// Any partition; input error when the parts are not a bijection onto 0 … n-1, usage error for no
  /// parts at all. Rows keep the order they have in the parts. O(tokens).
  static Layout from_parts(std::vector<Positions> parts);

  /// The kind it was built as; contiguous when built from lengths or parts.
  LayoutKind kind() const { return kind_; }
  std::int64_t tokens() const { return tokens_; }
  int ranks() const { return static_cast<int>(parts_.size()); }
  const Positions& positions(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  std::int64_t largest_chunk() const;  ///< tokens of the fullest rank

 private:
  LayoutKind kind_ = LayoutKind::contiguous;
  std::int64_t tokens_ = 0;
  std::vector<Positions> parts_;
};

}  // namespace ringlab
