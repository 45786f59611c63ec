#include "tests/emulator/machine/stores.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "optimized/cuda/hopper/descriptor.h"
#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/numbers.h"

namespace ringlab::cuda::emulator {
namespace {

const char* name_of(BoxStores::Kind kind) {
  return kind == BoxStores::Kind::replaces ? "store_box()" : "add_box()";
}

void put(BoxStores::Kind kind, std::byte* element, const std::byte* value, std::size_t bytes) {
  if (kind == BoxStores::Kind::replaces) {
    std::memcpy(element, value, bytes);
    return;
  }
  float sum, more;
  std::memcpy(&sum, element, sizeof(sum));
  std::memcpy(&more, value, sizeof(more));
  sum = flushed_sum(sum, more);
  std::memcpy(element, &sum, sizeof(sum));
}

/// Writes `bytes` of shared memory, swizzled as by load_box(), to existing elements of the box.
void write_box(BoxStores::Kind kind, const TensorBox& box, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<std::uint32_t>(box.map.element_bytes);
  for (std::uint32_t place = 0; place < bytes.size(); place += size) {
    std::byte* const element = element_at(box, place / kBoxRowBytes, place % kBoxRowBytes / size);
    if (element) put(kind, element, bytes.data() + swizzle_128(place), size);
  }
}

}  // namespace

void BoxStores::store(Kind kind, const TensorBox& box, const void* shared) {
  ThreadBlock& block = block_here();
  if (kind == Kind::adds && box.map.element_bytes != sizeof(float)) {
    fault("add_box(): elements of {} bytes, expected f32", box.map.element_bytes);
  }
  if (std::min({box.head, box.row, box.channel}) < 0) {  // an illegal instruction on an H100
    fault("{} at ({}, {}, {}): a box that is stored may not begin in front of its tensor",
          name_of(kind), box.head, box.row, box.channel);
  }
  const int count = static_cast<int>(box.map.box_rows) * static_cast<int>(kBoxRowBytes);
  const std::uint32_t address =
      block.shared.address(shared, count, kSwizzlePeriodBytes, name_of(kind));
  block.shared.check_fenced(address, count, name_of(kind));
  const std::byte* const begin = block.shared.at(address, count, name_of(kind));
  const auto job = [this, kind, box, begin, work = groups_.begin(),
                    bytes = std::vector<std::byte>(begin, begin + count)] {
    // The source must still hold the bytes that it held at the call: a write in between is a race.
    if (std::memcmp(begin, bytes.data(), bytes.size()) != 0) {
      fault("shared memory was written while {} from it was under way", name_of(kind));
    }
    write_box(kind, box, bytes);
    groups_.end(work);
  };
  if (issued_++ % 2 == 0) {
    held_[static_cast<std::size_t>(running_thread()->index)].push_back(job);
  } else {
    block.scheduler.post(job);
  }
  block.scheduler.maybe_yield();
}

void BoxStores::wait(int pending) {
  auto& held = held_[static_cast<std::size_t>(running_thread()->index)];
  for (auto& job : held) block_here().scheduler.post(std::move(job));
  held.clear();
  groups_.wait("wait_for_boxes<{}>()", pending);
}

namespace instructions {

void store_box(const TensorMap* map, const void* shared, int head, int row, int channel) {
  block_here().box_stores.store(BoxStores::Kind::replaces, {fields_of(*map), head, row, channel},
                                shared);
}
void add_box(const TensorMap* map, const void* shared, int head, int row, int channel) {
  block_here().box_stores.store(BoxStores::Kind::adds, {fields_of(*map), head, row, channel},
                                shared);
}
void commit_boxes() { block_here().box_stores.groups().commit(); }
void wait_for_boxes(int pending) { block_here().box_stores.wait(pending); }

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
