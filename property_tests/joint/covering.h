// Covering designs: few rows in which every class of a factor meets every class of each other one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "property_tests/generators/draws.h"
#include "property_tests/joint/meetings.h"

namespace ringlab::verify {

/// True when a row can be completed; classes that are not chosen yet are kNoClass.
using Fits = std::function<bool(const Classes&)>;

/// Rows one after the other. Each is chosen greedily, at every factor the class that brings most new
/// pairs (Cohen, Dalal, Fredman and Patton 1997).
class CoveringDesign {
 public:
  CoveringDesign(const FactorClasses& classes, Draws& draws);
  /// The row with its open classes chosen; nothing where it does not fit.
  std::optional<Classes> completed(Classes row, const Fits& fits);
  /// A row in which a pair meets that has not met; nothing when all have met that fit. Those that
  /// did not fit are tried again by the next call after that.
  std::optional<Classes> next(const Fits& fits);

 private:
  const std::vector<std::int8_t>& classes_of(Factor factor) const {
    return classes_[static_cast<std::size_t>(factor)];
  }
  std::int8_t best_class(Classes row, Factor factor, const Fits& fits);
  std::int64_t new_pairs(const Classes& row, Factor factor) const;

  const FactorClasses& classes_;
  Draws& draws_;
  std::vector<Factor> factors_;
  std::vector<ClassPair> open_;  ///< pairs that have not been begun with
  std::vector<ClassPair> unfit_;
  Meetings met_;
};

}  // namespace ringlab::verify
