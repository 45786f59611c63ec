#include "optimized/cuda/cudnn/mask_pieces.h"

#include <cstddef>

namespace ringlab::cudnn {
namespace {

using cuda::KeyRange;

bool sees_nothing(const KeyRange& row) { return row.last <= row.first; }

/// The steps of the ends of the interval from one query to the next.
struct Move {
  std::int32_t first = 0;
  std::int32_t last = 0;
  friend bool operator==(const Move&, const Move&) = default;
};
Move move_between(const KeyRange& row, const KeyRange& next) {
  return {next.first - row.first, next.last - row.last};
}
bool is_diagonal_or_straight(const Move& move) {
  return (move.first == 0 || move.first == 1) && (move.last == 0 || move.last == 1);
}

/// The end of a piece from query `first` on: the ends of its intervals move alike.
std::size_t end_of_piece(std::span<const KeyRange> rows, std::size_t first) {
  std::size_t end = first + 1;
  if (end == rows.size() || sees_nothing(rows[end])) return end;
  const Move move = move_between(rows[first], rows[end]);
  if (!is_diagonal_or_straight(move)) return end;
  while (end < rows.size() && !sees_nothing(rows[end]) &&
         move_between(rows[end - 1], rows[end]) == move) {
    ++end;
  }
  return end;
}

MaskPiece piece_of(std::span<const KeyRange> rows, std::size_t first, std::size_t end) {
  const Move all = move_between(rows[first], rows[end - 1]);
  return {.queries = {static_cast<std::int32_t>(first), static_cast<std::int32_t>(end)},
          .keys = {rows[first].first, rows[end - 1].last},
          .rises = all.last > 0,
          .leaves = all.first > 0};
}

}  // namespace

std::vector<MaskPiece> cut_mask(std::span<const KeyRange> rows) {
  std::vector<MaskPiece> pieces;
  for (std::size_t first = 0; first < rows.size();) {
    if (sees_nothing(rows[first])) {
      ++first;
      continue;
    }
    const std::size_t end = end_of_piece(rows, first);
    pieces.push_back(piece_of(rows, first, end));
    first = end;
  }
  return pieces;
}

}  // namespace ringlab::cudnn
