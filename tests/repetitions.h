// How often a test repeats what it draws at random.
#pragma once

#include <algorithm>

namespace ringlab {

/// `count`; under a sanitizer a tenth of it, at least 5: what it looks for shows early. A twentieth
/// for threads: there chance is in their order, not in what is drawn.
template <class Integer>
constexpr Integer repetitions(Integer count) {
#if defined(__SANITIZE_ADDRESS__)
  return std::min(count, std::max(count / 10, Integer{5}));
#elif defined(__SANITIZE_THREAD__)
  return std::min(count, std::max(count / 20, Integer{5}));
#else
  return count;
#endif
}

}  // namespace ringlab
