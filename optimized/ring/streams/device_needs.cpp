#include "optimized/ring/streams/device_needs.h"

#include <array>
#include <cstdio>
#include <string>

namespace ringlab::ring {
namespace {

std::string mib(std::int64_t bytes) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text.data();
}

}  // namespace

// Called before anything is allocated: an error with the sum of all needs says more than that of
// the allocation that happens to fail.
void check_device_memory(const DeviceNeed& need) {
  const cuda::DeviceMemory memory = cuda::device_memory(need.device);
  if (need.bytes <= memory.free) return;
  const std::string ranks = need.ranks == 1 ? "1 rank" : std::to_string(need.ranks) + " ranks";
  throw MachineError(
      {.where = "device " + std::to_string(need.device),
       .expected = mib(need.bytes) + " of memory, which the whole run of " + ranks + " needs there",
       .actual = mib(memory.free) + " free of " + mib(memory.all),
       .hint = "Use more devices, fewer tokens or fewer slots, or free what others hold"});
}

}  // namespace ringlab::ring
