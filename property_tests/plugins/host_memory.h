// The arrays of one call in the process of the plugin: inputs read-only, everything between pages
// that nobody may touch.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// The addresses of a sparse input are not to be had.
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
    unsigned char* reserved = nullptr;  ///< guard, pages, guard; of sparse arrays nobody's
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

/// Names what lies at an address of the call that is mapped now: "it wrote 16 bytes past the end of
/// o". Safe in signal handlers; empty text when the address is not one of the call's.
void describe_address(const void* address, bool write, char* text, std::size_t size);

}  // namespace ringlab::plugins
