#include "reference/core/shared_bytes.h"

#include <atomic>
#include <utility>

namespace ringlab {

struct SharedBytes::Held {
  std::vector<std::uint8_t> bytes;
  std::atomic<std::int64_t> users = 1;
};

SharedBytes::SharedBytes(std::vector<std::uint8_t> bytes) : held_(new Held{std::move(bytes)}) {}

SharedBytes::SharedBytes(const SharedBytes& other) : held_(other.held_) {
  if (held_) ++held_->users;
}

SharedBytes& SharedBytes::operator=(SharedBytes other) noexcept {
  std::swap(held_, other.held_);
  return *this;
}

SharedBytes::~SharedBytes() {
  if (held_ && --held_->users == 0) delete held_;
}

const std::vector<std::uint8_t>& SharedBytes::operator*() const { return held_->bytes; }

}  // namespace ringlab
