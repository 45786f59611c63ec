// How often a test repeats what it draws at random.
#pragma once

#include <algorithm>

namespace ringlab {

/// `count`; under a sanitizer a tenth of it, at least 5: what it looks for shows early.
template <class Integer>
constexpr Integer repetitions(Integer count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::min(count, std::max(count / 10, Integer{5}));
#else
  return count;
#endif
}

}  // namespace ringlab
