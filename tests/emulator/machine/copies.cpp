#include "tests/emulator/machine/copies.h"

#include <cstdint>
#include <cstring>

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kBytes = 16;

void land(SharedWindow& shared, std::byte* target, const void* global, bool valid) {
  const std::uint32_t address = shared.address(target, kBytes, kBytes, "copy_16_bytes()");
  // NaN from the issue must still be in the target: a write in between is a race.
  if (!shared.is_poisoned(address, kBytes)) {
    fault("shared offset {} was written while a copy_16_bytes() to it was under way",
          address - kFirstAddress);
  }
  if (valid) {
    std::memcpy(target, global, kBytes);
  } else {
    std::memset(target, 0, kBytes);  // cp.async with no source bytes: zeros
  }
}

}  // namespace

void Copies::copy(void* shared, const void* global, bool valid) {
  ThreadBlock& block = block_here();
  block.shared.address(shared, kBytes, kBytes, "copy_16_bytes()");
  if (valid && reinterpret_cast<std::uintptr_t>(global) % kBytes != 0) {
    fault("copy_16_bytes(): the global address is no multiple of 16");
  }
  // cp.async writes as ordinary code does: the asynchronous proxy sees it only after a fence.
  auto* target = static_cast<std::byte*>(shared);
  std::memset(target, static_cast<int>(kPoison), kBytes);
  // The source is read when the copy lands, so it must not change before that.
  block.scheduler.post([this, &block, work = groups_.begin(), target, global, valid] {
    land(block.shared, target, global, valid);
    groups_.end(work);
  });
}

namespace instructions {

void copy_16_bytes(void* shared, const void* global, bool valid) {
  block_here().copies.copy(shared, global, valid);
}
void commit_copies() { block_here().copies.groups().commit(); }
void wait_for_copies(int pending) {
  block_here().copies.groups().wait("wait_for_copies<{}>()", pending);
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
