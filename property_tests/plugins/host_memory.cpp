#include "property_tests/plugins/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace ringlab::plugins {
namespace {

// The width of a guard: far enough for a row or a head too many.
constexpr std::int64_t kGuardBytes = std::int64_t{4} << 20;

const MappedCall* mapped_now = nullptr;

/// Reserves addresses, at the one asked for if that is free: outputs of different calls then lie at
/// different places, inputs at the same.
unsigned char* reserve(std::uint64_t address, std::int64_t bytes) {
  void* wanted = reinterpret_cast<void*>(address == 0 ? 0 : address - kGuardBytes);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = MAP_FAILED;
  if (wanted != nullptr) memory = mmap(wanted, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED) memory = mmap(nullptr, size, PROT_NONE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
}

}  // namespace

// Each array is mapped between guards that nobody may touch: the whole range is reserved first, and
// the file is mapped into its middle.
MappedCall::MappedCall(CallMessage& message, int inputs, int outputs) {
  for (int id = 0; id < kSegments; ++id) {
    const Segment& segment = message.segments[id];
    if (segment.pages > 0) {
      map(static_cast<SegmentId>(id), segment, id < kInputs ? inputs : outputs);
    }
  }
  point(message.call);
  mapped_now = this;
}

MappedCall::~MappedCall() {
  mapped_now = nullptr;
  for (const Region& region : regions_) {
    if (region.reserved != nullptr) {
      munmap(region.reserved, static_cast<std::size_t>(region.reserved_bytes));
    }
  }
}

void MappedCall::map(SegmentId id, const Segment& segment, int file) {
  const std::int64_t page_bytes = segment.pages * kPage;
  Region& region = regions_[id];
  region.reserved_bytes = page_bytes + 2 * kGuardBytes;
  region.reserved = reserve(segment.address, region.reserved_bytes);
  const int access = id < kInputs ? PROT_READ : PROT_READ | PROT_WRITE;
  if (region.reserved == nullptr ||
      mmap(region.reserved + kGuardBytes, static_cast<std::size_t>(page_bytes), access,
           MAP_SHARED | MAP_FIXED, file, segment.file_offset) == MAP_FAILED) {
    throw std::bad_alloc();
  }
  region.array = region.reserved + kGuardBytes + segment.lead;
  region.bytes = segment.bytes;
  region.origin = segment.origin;
}

// An array that is not there is a null pointer, which is how the interface says "none".
void MappedCall::point(ringlab_call& call) const {
  const auto at = [this](SegmentId id) -> unsigned char* {
    const Region& region = regions_[id];
    return region.array == nullptr ? nullptr : region.array + region.origin;
  };
  call.q.data = at(kQ);
  call.k.data = at(kK);
  call.v.data = at(kV);
  call.dout.data = at(kDout);
  call.o.data = at(kOut);
  call.lse.data = at(kLse);
  call.dq.data = at(kDq);
  call.dk.data = at(kDk);
  call.dv.data = at(kDv);
  call.mask.starts = reinterpret_cast<const std::int64_t*>(at(kStarts));
  call.mask.positions = reinterpret_cast<const std::int64_t*>(at(kPositions));
  call.mask.visible_begin = reinterpret_cast<const std::int64_t*>(at(kBegins));
  call.mask.visible_end = reinterpret_cast<const std::int64_t*>(at(kEnds));
  call.mask.bytes = at(kBytes);
  call.modifiers.alibi_slopes = reinterpret_cast<const double*>(at(kSlopes));
  call.modifiers.sinks = reinterpret_cast<const double*>(at(kSinks));
  call.modifiers.kept = at(kKept);
}

void describe_address(const void* address, bool write, char* text, std::size_t size) {
  text[0] = '\0';
  if (mapped_now == nullptr) return;
  const char* verb = write ? "wrote" : "read";
  const auto* at = static_cast<const unsigned char*>(address);
  for (int id = 0; id < kSegments; ++id) {
    const MappedCall::Region& region = mapped_now->regions_[id];
    if (region.reserved == nullptr || at < region.reserved ||
        at >= region.reserved + region.reserved_bytes) {
      continue;
    }
    const char* name = kSegmentNames[id];
    const std::int64_t offset = at - region.array;
    if (offset < 0) {
      std::snprintf(text, size, "it %s before the start of %s (byte %lld before it)", verb, name,
                    static_cast<long long>(-offset));
    } else if (offset >= region.bytes) {
      std::snprintf(text, size, "it %s past the end of %s (byte %lld after it)", verb, name,
                    static_cast<long long>(offset - region.bytes));
    } else {
      // Reads inside are allowed; only inputs are protected, and only from writing.
      std::snprintf(text, size, "it wrote to its input %s, byte %lld", name,
                    static_cast<long long>(offset));
    }
    return;
  }
}

}  // namespace ringlab::plugins
