// The order in which the keys of a row are summed up, and the pieces.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "property_tests/diagnosis/model/model.h"
#include "reference/core/layout.h"

namespace ringlab::verify {

/// The largest score where no key is seen.
inline constexpr double kNoScore = -std::numeric_limits<double>::infinity();

/// Order of chunks. by_owner: gathered, chunk 0 first. by_hop: as in the schedule of the rank.
enum class KeyOrder { by_owner, by_hop };
/// The keys that share one update of the running maximum.
enum class Piece { key, tile, chunk };

/// Keys of a tile in kernels that choose its size themselves.
inline constexpr std::int64_t kKernelTiles[] = {16, 32, 64, 128};

/// The keys of one query, cut into pieces, in order, hidden keys included.
std::vector<std::vector<std::int64_t>> key_pieces(const Model& model, std::int64_t query,
                                                  KeyOrder order, Piece piece);

/// The largest score of a row among the keys that count; -inf where none does.
double largest_score(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i);

/// The largest score of a row among the keys of each piece and all before it; -inf before the first
/// visible one.
std::vector<double> running_maxima(const Model& model, std::int64_t b, std::int64_t h,
                                   std::int64_t i,
                                   const std::vector<std::vector<std::int64_t>>& pieces);

/// Owners whose chunks hold a key that a query of this rank sees, in the order of its schedule.
std::vector<int> needed_chunks(const Model& model, int rank);

/// Chunks that a rank is taken to visit: all of them, or those that it needs.
enum class Visited { all, needed };
/// The owners that each rank visits, in the order of its schedule.
std::vector<std::vector<int>> visits_of(const Model& model, Visited visited);

/// The tokens of each rank, and the row of each token in the chunk of its rank.
struct Chunks {
  explicit Chunks(const Layout& layout);
  const std::vector<std::int64_t>& of(int rank) const {
    return tokens[static_cast<std::size_t>(rank)];
  }
  std::size_t row_of(std::int64_t token) const { return rows[static_cast<std::size_t>(token)]; }

  std::vector<std::vector<std::int64_t>> tokens;
  std::vector<std::size_t> rows;
};
Layout query_layout(const Model& model);
Layout key_layout(const Model& model);

/// A count that says nothing of a row: numbers are read there that belong to no input.
inline constexpr double kWild = 1e26;

/// The pairs that a kernel looks at which skips out-of-sight tiles, [query · keys + key]. A tile of
/// keys is skipped when the smallest interval around its positions does not meet the smallest one
/// around what a tile of queries sees, bit matrices aside; a whole tile lies within it.
enum class Reach {
  everything,
  tiles_by_owner,
  tiles_by_hop,
  whole_tiles_by_owner,
  whole_tiles_by_hop,
  partial_blocks,
  visible_blocks
};
std::vector<std::uint8_t> pairs_in_reach(const Model& model, Reach reach);

/// Calls merge(parts[left], parts[right], is_last) for each pair of a balanced tree over parts: that
/// of neighbours, then that of pairs of them. It updates the left one; the first one is the whole.
template <class Part, class Merge>
void merge_in_a_tree(std::vector<Part>& parts, Merge merge) {
  for (std::size_t step = 1; step < parts.size(); step *= 2) {
    for (std::size_t left = 0; left + step < parts.size(); left += 2 * step) {
      merge(parts[left], parts[left + step], left == 0 && 2 * step >= parts.size());
    }
  }
}

}  // namespace ringlab::verify
