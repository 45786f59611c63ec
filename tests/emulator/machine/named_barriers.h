// bar.sync and bar.arrive.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ringlab::cuda::emulator {

/// The 16 barriers of a block; sync_block() uses barrier 0. Warps come whole. Faults: lanes of a
/// warp that differ, participants that disagree on their number, a warp that comes twice before the
/// others came, a thread that has ended and that sync_block() needs.
class NamedBarriers {
 public:
  explicit NamedBarriers(int threads);

  /// Called by each lane of the warp; returns the number of the round that has to end. `name`: the
  /// function that the warp called.
  std::uint64_t come(const char* name, int barrier, int threads);
  void wait(int barrier, std::uint64_t round);
  void end_thread();
  int ended() const { return ended_; }

  /// The arrival of a whole warp.
  std::uint64_t come_as_warp(int barrier, int threads);

 private:
  struct NamedBarrier {
    int threads = 0;
    int arrived = 0;
    std::uint64_t round = 0;
    std::vector<bool> came;  ///< warps
    std::vector<int> parked;
  };

  int threads_;
  int ended_ = 0;
  std::array<NamedBarrier, 16> states_;
};

namespace instructions {

void sync_block();
void sync_threads(int barrier, int threads);
void arrive_threads(int barrier, int threads);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
