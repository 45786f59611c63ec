#include "tests/emulator/machine/boxes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "optimized/cuda/hopper/descriptor.h"
#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kUnitBytes = 16;

/// 16 bytes of a row, from `channel` of the box on; zeros outside the tensor.
std::array<std::byte, kUnitBytes> read_unit(const TensorBox& box, int row, int channel) {
  std::array<std::byte, kUnitBytes> unit = {};
  const int size = static_cast<int>(box.map.element_bytes);
  // Reads channel by channel: a box may hang over any edge of the tensor.
  for (int i = 0; i < kUnitBytes / size; ++i) {
    const std::byte* element = element_at(box, row, channel + i);
    if (element) std::memcpy(unit.data() + size * i, element, static_cast<std::size_t>(size));
  }
  return unit;
}

void land(SharedWindow& shared, const TensorBox& box, std::uint32_t address) {
  const auto bytes = static_cast<int>(box.map.box_rows) * static_cast<int>(kBoxRowBytes);
  // NaN from the issue must still be in the target: an ordinary write in between is a race.
  if (!shared.is_poisoned(address, bytes)) {
    fault("shared memory from offset {} was written while a load_box() to it was under way",
          address - kFirstAddress);
  }
  const int unit_channels = kUnitBytes / static_cast<int>(box.map.element_bytes);
  for (int r = 0; r < box.map.box_rows; ++r) {
    for (int unit = 0; unit < static_cast<int>(kBoxRowBytes) / kUnitBytes; ++unit) {
      const auto data = read_unit(box, r, unit * unit_channels);
      const std::uint32_t place = address + static_cast<std::uint32_t>(r) * kBoxRowBytes +
                                  static_cast<std::uint32_t>(unit * kUnitBytes);
      // Swizzled by 128 bytes as the tensor map says, and as products expect their rows.
      shared.write_async(swizzle_128(place), data.data(), kUnitBytes);
    }
  }
}

}  // namespace

void Boxes::check_free(const BoxTarget& target) const {
  // Two copies to one place have no order.
  for (const BoxTarget& other : targets_) {
    if (target.address < other.address + other.bytes &&
        other.address < target.address + target.bytes) {
      fault("load_box(): another one to shared offset {} is under way",
            other.address - kFirstAddress);
    }
  }
}

void Boxes::end(std::uint32_t address) {
  std::erase_if(targets_, [address](const BoxTarget& target) { return target.address == address; });
}

void Boxes::load(ThreadBlock& block, void* shared, const TensorBox& box, Barrier* barrier) {
  const auto bytes = static_cast<std::uint32_t>(box.map.box_rows) * kBoxRowBytes;
  const BoxTarget target{
      block.shared.address(shared, static_cast<int>(bytes), kSwizzlePeriodBytes, "load_box()"),
      bytes};  // from the start of a period of the swizzle on
  MBarrier& notified = block.mbarriers.published(barrier, "load_box()");
  check_free(target);
  // Earlier writes of ordinary code to the target must have been fenced for the asynchronous proxy.
  block.shared.check_fenced(target.address, static_cast<int>(bytes), "load_box()");
  block.shared.poison(target.address, static_cast<int>(bytes));
  targets_.push_back(target);
  // The tensor is read when the box lands, and the barrier hears of the bytes after that.
  block.scheduler.post([this, &block, &notified, box, target] {
    land(block.shared, box, target.address);
    end(target.address);
    MBarriers::complete(notified, target.bytes);
  });
}

namespace instructions {

void load_box(void* shared, const TensorMap* map, Barrier* barrier, int head, int row,
              int channel) {
  ThreadBlock& block = block_here();
  block.boxes.load(block, shared, {fields_of(*map), head, row, channel}, barrier);
  block.scheduler.maybe_yield();
}

void load_box_for_all(void* shared, const TensorMap* map, Barrier* barrier, int blocks, int head,
                      int row, int channel) {
  ThreadBlock& here = block_here();
  for (int rank = 0; rank < blocks; ++rank) {
    ThreadBlock& there = here.cluster->block_at(rank, "load_box_for_all()");
    there.boxes.load(there, same_place(here, shared, there), {fields_of(*map), head, row, channel},
                     reinterpret_cast<Barrier*>(same_place(here, barrier, there)));
  }
  here.scheduler.maybe_yield();
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
