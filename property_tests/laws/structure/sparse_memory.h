// Doubles at addresses far apart: only the pages that are touched take memory.
#pragma once

#include <cstdint>
#include <set>

namespace ringlab::verify {

/// Addresses for `count` doubles: NaN on the pages that were touched, elsewhere zeros that may only
/// be read.
class SparseMemory {
 public:
  /// Unsupported where the machine gives no such addresses (ulimit -v).
  explicit SparseMemory(std::int64_t count);
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  /// The double at an index below `count`, on a page that may be read and written from now on.
  double& touch(std::int64_t index);

 private:
  double* data_ = nullptr;
  std::int64_t bytes_;
  std::set<std::int64_t> touched_;  // pages
};

}  // namespace ringlab::verify
