// Sets of global token positions, held as arithmetic runs so that they travel cheaply.
#pragma once

#include <cstdint>
#include <vector>

namespace ringlab {

/// first, first + stride, … (count of them). stride >= 1.
struct PositionRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
  friend bool operator==(const PositionRun&, const PositionRun&) = default;
};

/// An ordered list of distinct global positions: which token each local row of a chunk is.
/// Contiguous chunks are one run, zigzag chunks two, striped chunks one run of stride P.
/// Equal lists compare equal however they were made: the runs are always those that reading the
/// list from left to right finds. Distinctness is the caller's promise (Layout checks it).
class Positions {
 public:
  Positions() = default;
  /// The runs one after the other; empty ones are dropped. Input error for negative positions or
  /// counts, strides below 1, and positions that do not fit in 63 bits.
  explicit Positions(const std::vector<PositionRun>& runs);

  /// All positions 0 … tokens-1.
  static Positions all(std::int64_t tokens);
  /// Finds runs in an arbitrary list. Input error for negative positions.
  static Positions from_list(const std::vector<std::int64_t>& positions);

  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::vector<PositionRun>& runs() const { return runs_; }
  /// Global position of local row i, 0 <= i < size(). O(runs).
  std::int64_t operator[](std::int64_t i) const;
  std::vector<std::int64_t> to_list() const;
  /// Local rows first … first+count-1 as a set of their own. Input error outside 0 … size().
  /// O(runs).
  Positions slice(std::int64_t first, std::int64_t count) const;

  friend bool operator==(const Positions&, const Positions&) = default;

 private:
  std::vector<PositionRun> runs_;
  std::int64_t size_ = 0;
};

}  // namespace ringlab
