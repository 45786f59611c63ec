#include "tests/optimized/ring/counted_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ringlab::counted_memory {
namespace {

constinit std::atomic<std::int64_t> alive{0};
constinit std::atomic<bool> out{false};
constinit std::atomic<std::int64_t> asked{0};  // allocations since the outage was made
constinit std::atomic<std::int64_t> first_to_fail{0};
constinit std::atomic<std::int64_t> end_of_failures{0};
const char* place_that_failed = nullptr;  // written by the one that fails first

bool refuses() {
  if (!out.load(std::memory_order_relaxed)) return false;
  const std::int64_t number = asked.fetch_add(1);
  if (number == first_to_fail) {
    place_that_failed = static_cast<const char*>(__builtin_frame_address(0));
  }
  return number >= first_to_fail && number < end_of_failures;
}

}  // namespace

std::int64_t live() { return alive; }

Outage::Outage(std::int64_t first, std::int64_t count) {
  place_that_failed = nullptr;
  asked = 0;
  first_to_fail = first;
  end_of_failures = first + count;
  out = true;
}

void Outage::end() { out = false; }

const char* victim() { return place_that_failed; }

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (refuses()) throw std::bad_alloc();
  const std::size_t whole = (bytes / alignment + 1) * alignment;  // as aligned_alloc wants it
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes + 1)
                                                        : std::aligned_alloc(alignment, whole);
  if (!memory) throw std::bad_alloc();
  ++alive;
  return memory;
}

void release(void* memory) noexcept {
  if (!memory) return;
  --alive;
  std::free(memory);
}

}  // namespace
}  // namespace ringlab::counted_memory

// The array and nothrow forms of the library call these.
void* operator new(std::size_t bytes) { return ringlab::counted_memory::allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return ringlab::counted_memory::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { ringlab::counted_memory::release(memory); }
void operator delete(void* memory, std::size_t) noexcept {
  ringlab::counted_memory::release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  ringlab::counted_memory::release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  ringlab::counted_memory::release(memory);
}
