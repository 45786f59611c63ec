// cp.async: copies of 16 bytes by each thread, in groups.
#pragma once

#include <cstddef>
#include <vector>

namespace ringlab::cuda::emulator {

/// The target is poison from a copy's issue on and filled at a random later time; the source is
/// read at that time. A fault: writing to the target meanwhile.
class Copies {
 public:
  explicit Copies(int threads) : threads_(static_cast<std::size_t>(threads)) {}

  void copy(void* shared, const void* global, bool valid);
  void commit();
  void wait(int pending);
  int under_way() const { return under_way_; }

 private:
  struct PerThread {
    std::vector<int> groups = {0};  ///< copies under way in each; the last one is open
    std::size_t awaited = 0;        ///< the groups before this one are waited for
    bool is_parked = false;

    bool is_done() const;
  };
  void end_copy(PerThread& owner, std::size_t group);

  std::vector<PerThread> threads_;
  int under_way_ = 0;
};

namespace instructions {

void copy_16_bytes(void* shared, const void* global, bool valid);
void commit_copies();
void wait_for_copies(int pending);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
