// Counts the bytes a rank holds, so that memory claims are measured rather than asserted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringlab {

/// Live and peak bytes of one rank. Not thread-safe: one meter belongs to one rank.
class MemoryMeter {
 public:
  void add(std::int64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void remove(std::int64_t bytes) { live_ -= bytes; }
  std::int64_t live_bytes() const { return live_; }
  std::int64_t peak_bytes() const { return peak_; }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

/// A vector whose bytes are counted while it lives. Move-only.
template <class T>
class MeteredBuffer {
 public:
  MeteredBuffer(MemoryMeter& meter, std::int64_t count, const T& fill = T{})
      : meter_(&meter), values_(static_cast<std::size_t>(count), fill) {
    meter_->add(bytes());
  }
  ~MeteredBuffer() {
    if (meter_) meter_->remove(bytes());
  }
  MeteredBuffer(MeteredBuffer&& other) noexcept
      : meter_(std::exchange(other.meter_, nullptr)), values_(std::move(other.values_)) {}
  MeteredBuffer& operator=(MeteredBuffer&& other) noexcept {
    std::swap(meter_, other.meter_);
    values_.swap(other.values_);
    return *this;
  }
  MeteredBuffer(const MeteredBuffer&) = delete;
  MeteredBuffer& operator=(const MeteredBuffer&) = delete;

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  std::int64_t bytes() const { return size() * static_cast<std::int64_t>(sizeof(T)); }

 private:
  MemoryMeter* meter_;
  std::vector<T> values_;
};

}  // namespace ringlab
