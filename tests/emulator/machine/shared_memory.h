// The shared memory of a block, as ordinary loads see it and as the asynchronous proxy does.
//
// Kernels read and write the ordinary view through plain pointers. load_box and wgmma go through
// the other view, which learns of ordinary writes at a fence_async_proxy(): of all that were made
// since the last fence, by whichever thread. Bytes that may not be read yet are poison in both
// views: 0xff, which is NaN in every format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ringlab::cuda::emulator {

inline constexpr std::byte kPoison{0xff};
/// The address of the first byte in the window; the machine keeps lower addresses for itself.
inline constexpr std::uint32_t kFirstAddress = 1024;

class SharedWindow {
 public:
  explicit SharedWindow(int bytes);

  std::byte* data() { return data_; }
  /// Address in the window of `bytes` bytes at `place`; a fault unless they are inside and aligned.
  std::uint32_t address(const void* place, int bytes, int alignment, const char* what) const;
  /// The `bytes` bytes at an address; a fault unless they are inside.
  std::byte* at(std::uint32_t address, int bytes, const char* what);

  void fence() { async_view_.assign(data_, data_ + bytes_); }
  /// Faults if there are ordinary writes that no fence has published.
  void check_fenced(std::uint32_t address, int bytes, const char* what) const;
  void poison(std::uint32_t address, int bytes);
  bool is_poisoned(std::uint32_t address, int bytes) const;
  /// A write by the asynchronous proxy; ordinary loads see it too.
  void write_async(std::uint32_t address, const std::byte* source, int bytes);
  /// Faults if something was written just outside.
  void check_edges() const;

 private:
  int bytes_;
  std::vector<std::byte> storage_;
  std::byte* data_;
  std::vector<std::byte> async_view_;
};

}  // namespace ringlab::cuda::emulator
