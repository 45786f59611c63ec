// The arrays of one call in the process of the plugin: inputs read-only, everything between pages
// that nobody may touch.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// The error that the addresses of a sparse input cannot be had.
struct NoAddresses : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class MappedCall {
 public:
  /// Maps the segments and points `message.call` at them; std::bad_alloc where memory is out.
  MappedCall(CallMessage& message, int inputs, int outputs);
  ~MappedCall();
  MappedCall(const MappedCall&) = delete;
  MappedCall& operator=(const MappedCall&) = delete;

 private:
  void map(SegmentId id, const Segment& segment, int file);
  void map_runs(SegmentId id, const Segment& segment, int file);
  void point(ringlab_call& call) const;
  void unmap();

  struct Region {
    unsigned char* reserved = nullptr;  ///< guard, pages, guard; only noted for sparse arrays
    unsigned char* array = nullptr;
    std::int64_t reserved_bytes = 0;
    std::int64_t bytes = 0;
    std::int64_t origin = 0;
    bool is_sparse = false;
  };
  struct Mapping {
    unsigned char* start;
    std::int64_t bytes;
  };
  Region regions_[kSegments];
  std::vector<Mapping> mappings_;
  friend void describe_address(const void* address, bool write, char* text, std::size_t size);
};

/// Describes an access to an address of the call mapped now: "it wrote past the end of o (byte 16
/// after it)". Safe in signal handlers; empty text for any other address.
void describe_address(const void* address, bool write, char* text, std::size_t size);

}  // namespace ringlab::plugins
