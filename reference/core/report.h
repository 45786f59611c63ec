// Comparing a result with the exact one under per-element tolerances: a value, not an error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/core/tensor.h"

namespace ringlab {

/// The element with the largest |got - exact| / allowed.
struct WorstElement {
  std::int64_t batch = 0, head = 0, token = 0, channel = 0;
  double got = 0;
  double exact = 0;
  double allowed = 0;
  double ratio = 0;  ///< |got - exact| / allowed; +inf for NaN, or where 0 is allowed and missed
};

/// One tensor's comparison. Passes when no element fails `!(error <= allowed)`, so NaN never
/// passes. Holds when it passes and a tensor of zeros would not have passed as well (decision 46).
struct TensorReport {
  std::string tensor;  ///< "o", "lse", "dq", "dk", "dv"
  std::int64_t compared = 0;
  std::int64_t failed = 0;
  WorstElement worst;
  /// The name of `exact` in a sentence: "other run" where it is not the exact answer.
  std::string against = "exact";
  std::int64_t measured = 0;  ///< finite elements, but for zeros that are allowed no error
  std::int64_t telling = 0;   ///< measured ones where 0 is off by more than is allowed
  /// Measured ones that are allowed any finite error, or as much as the largest |exact| is; all of
  /// them where none is telling and 0 is not the answer.
  std::int64_t unbounded = 0;
  std::int64_t infinite = 0;  ///< measured ones that are allowed any finite error
  bool passed() const { return failed == 0; }
  /// True when the bounds are too wide to tell the answer from zeros.
  bool is_open() const { return unbounded > 0 && telling == 0; }
};

struct Report {
  std::vector<TensorReport> tensors;
  bool passed() const;             ///< every tensor passed, and there is one: absent is not passed
  bool held() const;               ///< it passed, and no tensor is open
  std::int64_t unbounded() const;  ///< elements, over the tensors
  double worst_ratio() const;      ///< largest ratio over the tensors, 0 when nothing was compared
  /// One line on the worst element of the worst tensor: address, got, exact, allowed, ratio.
  std::string summary() const;
};

/// Compares element by element. -inf equals -inf and +inf equals +inf; any other pair with an
/// infinity fails, whatever is allowed. An `allowed` of +inf passes every finite value; of NaN or
/// below zero, none. NaN in `got` or in `exact` fails. Input error unless the three extents agree.
/// `worst` is the first element with the largest ratio; every failing ratio is above 1. An element
/// is telling where max(|exact|, size) is above `allowed`: `size` is that of a wrong answer where
/// the exact one may vanish.
TensorReport compare(std::string tensor, const TensorView<const double>& got,
                     const TensorView<const double>& exact, const TensorView<const double>& allowed,
                     double size = 0);

}  // namespace ringlab
