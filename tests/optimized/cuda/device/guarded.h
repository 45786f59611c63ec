// Device memory with canaries on both sides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "optimized/cuda/device.h"

namespace ringlab::cuda {

/// `values` between two rows of canaries. The values begin where 16 bytes do, and no further.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::span<const T> values) : count_(values.size()) {
    std::vector<std::byte> all(bytes() + 2 * kCanaries, kCanary);
    std::memcpy(all.data() + kCanaries, values.data(), bytes());
    memory_ = DeviceTensor<std::byte>(0, all);
  }

  T* data() const { return reinterpret_cast<T*>(memory_.data() + kCanaries); }

  /// What is there now. Throws when a canary has been written over.
  std::vector<T> values(const std::string& name) const {
    std::vector<std::byte> all(bytes() + 2 * kCanaries);
    memory_.read(0, all);
    const auto intact = [](std::byte b) { return b == kCanary; };
    if (!std::all_of(all.begin(), all.begin() + kCanaries, intact)) {
      throw std::runtime_error(name + " was written in front of its first element");
    }
    if (!std::all_of(all.end() - kCanaries, all.end(), intact)) {
      throw std::runtime_error(name + " was written behind its last element");
    }
    std::vector<T> values(count_);
    std::memcpy(values.data(), all.data() + kCanaries, bytes());
    return values;
  }

  /// To the host. Throws like values().
  void copy_to(T* host, const std::string& name) const {
    const std::vector<T> now = values(name);
    std::ranges::copy(now, host);
  }

  /// Throws when anything is not as it was given.
  void expect_unchanged(std::span<const T> given, const std::string& name) const {
    const std::vector<T> now = values(name);
    if (count_ > 0 && std::memcmp(now.data(), given.data(), bytes()) != 0) {
      throw std::runtime_error(name + ", an input, was changed");
    }
  }

 private:
  static constexpr std::ptrdiff_t kCanaries = 4096;
  static constexpr std::byte kCanary{0xa5};
  std::size_t bytes() const { return count_ * sizeof(T); }

  std::size_t count_;
  DeviceTensor<std::byte> memory_;
};

}  // namespace ringlab::cuda
