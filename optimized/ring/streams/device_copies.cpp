#include "optimized/ring/streams/device_copies.h"

#include "optimized/cuda/device.h"

namespace ringlab::ring {

std::string copies_text(int devices) {
  if (devices < 2) return "";
  // Pairs are ordered: `to` may reach memory of `from`, and not the other way round.
  const auto pairs = cuda::unconnected_devices(devices);
  if (pairs.empty()) return "from device to device";
  std::string text;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) text += i + 1 == pairs.size() ? " and " : ", ";
    text += std::to_string(pairs[i].first) + " -> " + std::to_string(pairs[i].second);
  }
  return text + " through the host";
}

}  // namespace ringlab::ring
