// The arrays of one call in the process of the plugin: inputs read-only, everything between pages
// that nobody may touch.
#pragma once

#include <string>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

class MappedCall {
 public:
  /// Maps the segments and points `message.call` at them; ends the process where memory is out.
  MappedCall(CallMessage& message, int inputs, int outputs);
  ~MappedCall();
  MappedCall(const MappedCall&) = delete;
  MappedCall& operator=(const MappedCall&) = delete;

 private:
  void map(SegmentId id, const Segment& segment, int file);
  void point(ringlab_call& call) const;

  struct Region {
    unsigned char* reserved = nullptr;  ///< guard, pages, guard
    unsigned char* array = nullptr;
    std::int64_t reserved_bytes = 0;
    std::int64_t bytes = 0;
    std::int64_t origin = 0;
  };
  Region regions_[kSegments];
  friend void describe_address(const void* address, bool write, char* text, std::size_t size);
};

/// Names what lies at an address of the call that is mapped now: "it wrote 16 bytes past the end of
/// o". Safe in signal handlers; empty text when the address is not one of the call's.
void describe_address(const void* address, bool write, char* text, std::size_t size);

}  // namespace ringlab::plugins
