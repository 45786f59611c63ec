#include "property_tests/plugins/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace ringlab::plugins {
namespace {

// The width of a guard: wide enough for a row or a head too many.
constexpr std::int64_t kGuardBytes = std::int64_t{4} << 20;

// The distance up to which a touched address is said to be beside a sparse array: as far as a
// wrapped offset of 32 bits may lead.
constexpr std::int64_t kFarBytes = std::int64_t{1} << 36;

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
  try {
    for (int id = 0; id < kSegments; ++id) {
      const Segment& segment = message.segments[id];
      const int file = id < kInputs ? inputs : outputs;
      if (segment.runs > 0) {
        map_runs(static_cast<SegmentId>(id), segment, file);
      } else if (segment.pages > 0) {
        map(static_cast<SegmentId>(id), segment, file);
      }
    }
  } catch (...) {
    unmap();
    throw;
  }
  point(message.call);
  mapped_now = this;
}

MappedCall::~MappedCall() {
  mapped_now = nullptr;
  unmap();
}

void MappedCall::unmap() {
  for (const Mapping& mapping : mappings_) {
    munmap(mapping.start, static_cast<std::size_t>(mapping.bytes));
  }
}

void MappedCall::map(SegmentId id, const Segment& segment, int file) {
  const std::int64_t page_bytes = segment.pages * kPage;
  Region& region = regions_[id];
  region.reserved_bytes = page_bytes + 2 * kGuardBytes;
  region.reserved = reserve(segment.address, region.reserved_bytes);
  if (region.reserved != nullptr) mappings_.push_back({region.reserved, region.reserved_bytes});
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

// Gaps between the runs are not even reserved: limits of addresses count only what is mapped.
void MappedCall::map_runs(SegmentId id, const Segment& segment, int file) {
  std::vector<PageRun> runs(static_cast<std::size_t>(segment.runs));
  const std::size_t bytes = runs.size() * sizeof(PageRun);
  if (pread(file, runs.data(), bytes, segment.file_offset) != static_cast<ssize_t>(bytes)) {
    throw std::bad_alloc();
  }
  auto* const first = reinterpret_cast<unsigned char*>(segment.address);
  for (const PageRun& run : runs) {
    unsigned char* const wanted = first + run.page * kPage;
    const std::int64_t size = run.pages * kPage;
    void* const there = mmap(wanted, static_cast<std::size_t>(size), PROT_READ,
                             MAP_SHARED | MAP_FIXED_NOREPLACE, file, run.file_offset);
    if (there == MAP_FAILED) throw NoAddresses(kSegmentNames[id]);
    mappings_.push_back({static_cast<unsigned char*>(there), size});
    if (there != wanted) throw NoAddresses(kSegmentNames[id]);  // a system without NOREPLACE
  }
  regions_[id] = {.reserved = first - kFarBytes,
                  .array = first + segment.lead,
                  .reserved_bytes = segment.pages * kPage + 2 * kFarBytes,
                  .bytes = segment.bytes,
                  .origin = segment.origin,
                  .is_sparse = true};
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
  // Sparse arrays come last: an address beside another array may be far beside a sparse one, too.
  for (int n = 0; n < 2 * kSegments; ++n) {
    const int id = n % kSegments;
    const MappedCall::Region& region = mapped_now->regions_[id];
    if (region.is_sparse != (n >= kSegments) || region.reserved == nullptr ||
        at < region.reserved || at >= region.reserved + region.reserved_bytes) {
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
    } else if (region.is_sparse && !write) {
      std::snprintf(text, size, "it read between the elements of %s, byte %lld", name,
                    static_cast<long long>(offset));
    } else {
      // Reads inside are allowed; only inputs are protected, and only from writing.
      std::snprintf(text, size, "it wrote to its input %s, byte %lld", name,
                    static_cast<long long>(offset));
    }
    return;
  }
}

}  // namespace ringlab::plugins
