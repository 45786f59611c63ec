// A check that the exact reference gives its known answers on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/case.h"

namespace ringlab::verify {

/// Fingerprint of the oracle: one SHA-256 of o, lse, dq, dk and dv of a fixed list of small
/// problems, rounded to a grid of 2^-20. A number is decided when everything within the oracle's
/// own bound of it rounds to the same point of the grid: then its bits, which differ between
/// libraries and processors, do not matter.
struct OracleCheck {
  int problems = 0;
  std::int64_t numbers = 0;
  std::int64_t undecided = 0;
  std::string fingerprint;
  std::string expected;
  bool agrees() const { return fingerprint == expected && undecided == 0; }
};
OracleCheck check_oracle();

/// The fixed problems: every mask and dtype, grouped heads, empty rows, no tokens, modifiers.
std::vector<Case> oracle_problems();

/// Digest of numbers on the grid, added one after the other, for check_oracle().
class GridDigest {
 public:
  void add_problem(const Case& c);
  /// Adds a value that is known within `error`. -inf is a number of its own.
  void add(double value, double error);
  std::int64_t numbers() const { return numbers_; }
  std::int64_t undecided() const { return undecided_; }
  std::string finish() const;

 private:
  std::string text_;
  std::int64_t numbers_ = 0;
  std::int64_t undecided_ = 0;
};

}  // namespace ringlab::verify
