// Bytes that copies share. What std::shared_ptr would do, kept out of line: <memory> would double
// the time it takes to read the headers that everything includes.
#pragma once

#include <cstdint>
#include <vector>

namespace ringlab {

/// Immutable; copies are cheap and may live in different threads.
class SharedBytes {
 public:
  SharedBytes() = default;  ///< none: neither * nor -> may be asked
  SharedBytes(std::vector<std::uint8_t> bytes);
  SharedBytes(const SharedBytes& other);
  SharedBytes(SharedBytes&& other) noexcept : held_(other.held_) { other.held_ = nullptr; }
  SharedBytes& operator=(SharedBytes other) noexcept;
  ~SharedBytes();

  explicit operator bool() const { return held_ != nullptr; }
  const std::vector<std::uint8_t>& operator*() const;
  const std::vector<std::uint8_t>* operator->() const { return &**this; }

 private:
  struct Held;
  Held* held_ = nullptr;
};

}  // namespace ringlab
