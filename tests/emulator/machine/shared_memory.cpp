#include "tests/emulator/machine/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr std::size_t kAlignment = 1024;  // of a swizzled box
constexpr int kEdgeBytes = 4096;          // on both sides, filled with a pattern
constexpr std::byte kEdge{0xa5};

/// The first multiple of 1024 that is no multiple of 2048, an edge after the beginning. Finds
/// kernels that rely on an alignment to more than 1024 bytes, which a GPU does not promise.
std::byte* place_in(std::vector<std::byte>& storage) {
  const auto begin = reinterpret_cast<std::uintptr_t>(storage.data()) + kEdgeBytes;
  const std::uintptr_t place = (begin + 2 * kAlignment - 1) / (2 * kAlignment) * (2 * kAlignment);
  return storage.data() + (place + kAlignment - reinterpret_cast<std::uintptr_t>(storage.data()));
}

}  // namespace

SharedWindow::SharedWindow(int bytes)
    : bytes_(bytes),
      storage_(static_cast<std::size_t>(bytes) + 2 * kEdgeBytes + 4 * kAlignment, kEdge),
      data_(place_in(storage_)),
      // The view of the asynchronous proxy: NaN at first, as is the ordinary view.
      async_view_(static_cast<std::size_t>(bytes), kPoison) {
  std::fill(data_, data_ + bytes, kPoison);
}

std::uint32_t SharedWindow::address(const void* place, int bytes, int alignment,
                                    const char* what) const {
  // A generic pointer may point anywhere: outside of the block's window it is a fault.
  const std::ptrdiff_t offset = static_cast<const std::byte*>(place) - data_;
  if (offset < 0 || offset + bytes > bytes_) {
    fault("{}: {} bytes at offset {} of {} bytes of shared memory", what, bytes, offset, bytes_);
  }
  if (offset % alignment != 0) {
    fault("{}: shared offset {} is no multiple of {}", what, offset, alignment);
  }
  return kFirstAddress + static_cast<std::uint32_t>(offset);
}

std::byte* SharedWindow::at(std::uint32_t address, int bytes, const char* what) {
  const std::int64_t offset = std::int64_t{address} - kFirstAddress;
  if (offset < 0 || offset + bytes > bytes_) {
    fault("{}: {} bytes at offset {} of {} bytes of shared memory", what, bytes, offset, bytes_);
  }
  return data_ + offset;
}

void SharedWindow::check_fenced(std::uint32_t address, int bytes, const char* what) const {
  const std::size_t offset = address - kFirstAddress;
  // Both views are the same where every write was fenced.
  if (std::memcmp(data_ + offset, async_view_.data() + offset, static_cast<std::size_t>(bytes))) {
    fault("{}: shared offset {} was written and no fence_async_proxy() followed", what, offset);
  }
}

void SharedWindow::poison(std::uint32_t address, int bytes) {
  // Writes both views: the asynchronous proxy sees its own copies without a fence.
  const std::size_t offset = address - kFirstAddress;
  std::memset(data_ + offset, static_cast<int>(kPoison), static_cast<std::size_t>(bytes));
  std::memset(async_view_.data() + offset, static_cast<int>(kPoison),
              static_cast<std::size_t>(bytes));
}

bool SharedWindow::is_poisoned(std::uint32_t address, int bytes) const {
  const std::byte* begin = data_ + (address - kFirstAddress);
  return std::all_of(begin, begin + bytes, [](std::byte b) { return b == kPoison; });
}

void SharedWindow::write_async(std::uint32_t address, const std::byte* source, int bytes) {
  const std::size_t offset = address - kFirstAddress;
  std::memcpy(data_ + offset, source, static_cast<std::size_t>(bytes));
  std::memcpy(async_view_.data() + offset, source, static_cast<std::size_t>(bytes));
}

void SharedWindow::check_edges() const {
  // Called when the block ends: no thread may have written beyond its memory.
  const auto is_edge = [](std::byte b) { return b == kEdge; };
  const std::byte* end = storage_.data() + storage_.size();
  if (!std::all_of(storage_.data(), static_cast<const std::byte*>(data_), is_edge)) {
    fault("something was written before the beginning of shared memory");
  }
  if (!std::all_of(static_cast<const std::byte*>(data_) + bytes_, end, is_edge)) {
    fault("something was written after the end of {} bytes of shared memory", bytes_);
  }
}

}  // namespace ringlab::cuda::emulator
