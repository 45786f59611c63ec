#include "property_tests/joint/covering.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ringlab::verify {

CoveringDesign::CoveringDesign(const FactorClasses& classes, Draws& draws)
    : classes_(classes), draws_(draws), open_(pairs_of(classes)) {
  for (const Factor factor : kAllFactors) {
    if (!classes_of(factor).empty()) factors_.push_back(factor);
  }
}

std::optional<Classes> CoveringDesign::next(const Fits& fits) {
  while (!open_.empty()) {
    const ClassPair pair = open_.back();
    open_.pop_back();
    if (met_.has(pair)) continue;
    Classes row;
    row[pair.first] = pair.first_class;
    row[pair.second] = pair.second_class;
    if (std::optional<Classes> whole = completed(row, fits)) return whole;
    unfit_.push_back(pair);
  }
  open_.swap(unfit_);
  return std::nullopt;
}

// Open classes are chosen in a random order of their factors.
std::optional<Classes> CoveringDesign::completed(Classes row, const Fits& fits) {
  if (!fits(row)) return std::nullopt;
  std::vector<Factor> open;
  for (const Factor factor : factors_) {
    if (row[factor] == kNoClass) open.push_back(factor);
  }
  draws_.shuffle(open);
  for (const Factor factor : open) row[factor] = best_class(row, factor, fits);
  met_.add(row);
  return row;
}

/// The class that fits and brings most new pairs with those chosen; of equal ones any.
std::int8_t CoveringDesign::best_class(Classes row, Factor factor, const Fits& fits) {
  std::int8_t best = kNoClass;
  std::int64_t most = -1, equal = 0;
  for (const std::int8_t number : classes_of(factor)) {
    row[factor] = number;
    if (!fits(row)) continue;
    const std::int64_t brought = new_pairs(row, factor);
    if (brought > most) {
      most = brought;
      equal = 1;
      best = number;
    } else if (brought == most && draws_.below(++equal) == 0) {
      best = number;
    }
  }
  return best;
}

std::int64_t CoveringDesign::new_pairs(const Classes& row, Factor factor) const {
  return std::count_if(factors_.begin(), factors_.end(), [&](Factor other) {
    if (other == factor || row[other] == kNoClass) return false;
    const ClassPair pair = other < factor ? ClassPair{other, row[other], factor, row[factor]}
                                          : ClassPair{factor, row[factor], other, row[other]};
    return !met_.has(pair);
  });
}

}  // namespace ringlab::verify
