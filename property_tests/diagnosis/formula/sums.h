// The sums of a softmax that an edit is made in.
#pragma once

#include <string>

namespace ringlab::verify {

struct Sums {
  const char* id;
  const char* words;
  bool acc, sum;
};
inline constexpr Sums kAcc{"acc", "the accumulator", true, false};
inline constexpr Sums kSum{"sum", "the row sum", false, true};
inline constexpr Sums kBoth{"both", "accumulator and row sum", true, true};

}  // namespace ringlab::verify
