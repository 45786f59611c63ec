// The arrays of a call as bytes on pages of their own, and the outputs read back from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/plugins/protocol.h"
#include "reference/core/dtype.h"
#include "reference/core/tensor.h"

namespace ringlab::plugins {

/// The end of its pages at which an array lies: the last, so that one element too many meets a
/// guard, or the first, for one before the start.
enum class Placement { at_the_end, at_the_start };

/// A memory file in the making: arrays, each on pages of its own.
class Pages {
 public:
  Pages(Placement placement, std::uint8_t filler) : placement_(placement), filler_(filler) {}

  /// Adds room for an array; the rest of its pages holds the filler.
  Segment add(std::int64_t bytes);
  /// The place of an array of so many bytes on pages of its own, none of which is added.
  Segment place(std::int64_t bytes) const;
  /// Adds `count` pages; returns the offset of the first in the file.
  std::int64_t add_pages(std::int64_t count);
  std::uint8_t* array(const Segment& segment) {
    return bytes_.data() + segment.file_offset + segment.lead;
  }
  std::uint8_t* at(std::int64_t file_offset) { return bytes_.data() + file_offset; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  Placement placement_;
  std::uint8_t filler_;
  std::vector<std::uint8_t> bytes_;
};

/// Copies a tensor as `dtype`, in its own memory order, signalling NaN in the gaps. Fills in
/// `shape` but for its pointer. Orders that span much more than their elements are sparse: only the
/// pages with elements are there. Those that need too many of them are made dense.
Segment add_tensor(Pages& pages, const TensorView<const double>& values, DType dtype,
                   ringlab_tensor& shape);
/// Adds room for a dense tensor, every element a signalling NaN that `mark` tells from those of
/// other calls.
Segment add_output(Pages& pages, const Extents& extents, DType dtype, std::uint64_t mark,
                   ringlab_tensor& shape);
Segment add_numbers(Pages& pages, const std::vector<std::int64_t>& numbers);
Segment add_numbers(Pages& pages, const std::vector<double>& numbers);
Segment add_bytes(Pages& pages, const std::vector<std::uint8_t>& bytes);

/// An output after the call, in doubles. `complaint` says when elements still hold the NaN of
/// add_output().
struct Written {
  Tensor<double> values;
  std::string complaint = {};
};
Written read_output(const std::vector<std::uint8_t>& file, const Segment& segment,
                    const Extents& extents, DType dtype, std::uint64_t mark, const char* name);
/// The first byte beside an output that is no longer the filler, in words; empty when none.
std::string overrun(const std::vector<std::uint8_t>& file, const Segment& segment,
                    std::uint8_t filler, const char* name);

}  // namespace ringlab::plugins
