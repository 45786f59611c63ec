#include "property_tests/plugins/arrays/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "property_tests/plugins/arrays/elements.h"
#include "property_tests/plugins/arrays/sparse_arrays.h"

namespace ringlab::plugins {
namespace {

double decode(const std::uint8_t* at, DType dtype) {
  return with_element_type(dtype, [&](auto element) {
    std::memcpy(&element, at, sizeof(element));
    return static_cast<double>(element);
  });
}

/// True when the caller's memory order wastes so much that most of its pages have no element.
bool is_sparse(const TensorView<const double>& values) {
  constexpr std::int64_t kMostWaste = 8;
  const std::int64_t elements = values.extents.size();
  return elements > 0 &&
         span_of(values.extents, values.strides).elements() > kMostWaste * elements + kPage;
}

template <class Number>
Segment add_array(Pages& pages, const std::vector<Number>& numbers) {
  const Segment segment = pages.add(std::ssize(numbers) * std::int64_t{sizeof(Number)});
  std::memcpy(pages.array(segment), numbers.data(), static_cast<std::size_t>(segment.bytes));
  return segment;
}

}  // namespace

Segment Pages::place(std::int64_t bytes) const {
  Segment segment;
  segment.pages = std::max<std::int64_t>(1, rounded_up(bytes, kPage) / kPage);
  segment.bytes = bytes;
  if (placement_ == Placement::at_the_end) {
    segment.lead = segment.pages * kPage - rounded_up(bytes, kAlignment);
  }
  return segment;
}

std::int64_t Pages::add_pages(std::int64_t count) {
  const std::int64_t file_offset = std::ssize(bytes_);
  bytes_.resize(bytes_.size() + static_cast<std::size_t>(count * kPage), filler_);
  return file_offset;
}

Segment Pages::add(std::int64_t bytes) {
  Segment segment = place(bytes);
  segment.file_offset = add_pages(segment.pages);
  return segment;
}

// Gaps between the elements hold NaN: a plugin that takes strided inputs for dense shows at once.
Segment add_tensor(Pages& pages, const TensorView<const double>& values, DType dtype,
                   ringlab_tensor& shape) {
  const Extents& e = values.extents;
  Strides strides = values.strides;
  if (is_sparse(values)) {
    if (const std::optional<Segment> sparse = add_sparse_tensor(pages, values, dtype, shape)) {
      return *sparse;
    }
    strides = dense_strides(e);
  }
  if (e.size() == 0) strides = dense_strides(e);
  describe(e, strides, dtype, shape);
  const Span span = e.size() == 0 ? Span{0, -1} : span_of(e, strides);
  Segment segment = pages.add(span.elements() * size_of(dtype));
  segment.origin = -span.low * size_of(dtype);
  segment.address = address_for(values.data);
  std::uint8_t* array = pages.array(segment);
  fill_with_nan(array, span.elements(), dtype, 1);
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    const std::int64_t offset =
        b * strides.batch + h * strides.head + t * strides.token + c * strides.channel;
    encode(array + segment.origin + offset * size_of(dtype), dtype, values(b, h, t, c));
  });
  return segment;
}

Segment add_output(Pages& pages, const Extents& extents, DType dtype, std::uint64_t mark,
                   ringlab_tensor& shape) {
  describe(extents, dense_strides(extents), dtype, shape);
  const Segment segment = pages.add(extents.size() * size_of(dtype));
  fill_with_nan(pages.array(segment), extents.size(), dtype, mark);
  return segment;
}

Segment add_numbers(Pages& pages, const std::vector<std::int64_t>& numbers) {
  return add_array(pages, numbers);
}
Segment add_numbers(Pages& pages, const std::vector<double>& numbers) {
  return add_array(pages, numbers);
}

Segment add_bytes(Pages& pages, const std::vector<std::uint8_t>& bytes) {
  const Segment segment = pages.add(std::ssize(bytes));
  std::copy(bytes.begin(), bytes.end(), pages.array(segment));
  return segment;
}

// An element that still holds the mark of this call was not written; another call's mark, or a
// quiet NaN, was.
Written read_output(const std::vector<std::uint8_t>& file, const Segment& segment,
                    const Extents& extents, DType dtype, std::uint64_t mark, const char* name) {
  Written written{Tensor<double>(extents)};
  const std::uint64_t untouched = signalling_nan(dtype, mark);
  const auto size = static_cast<std::size_t>(size_of(dtype));
  const std::uint8_t* at = file.data() + segment.file_offset + segment.lead;
  std::int64_t missing = 0;
  std::string first;
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    if (std::memcmp(at, &untouched, size) == 0 && missing++ == 0) {
      first = fmt::format("[batch {}, head {}, token {}, channel {}]", b, h, t, c);
    }
    written.values(b, h, t, c) = decode(at, dtype);
    at += size;
  });
  if (missing > 0) {
    written.complaint = fmt::format("it left {} of {} elements of {} unwritten, the first {}",
                                    missing, extents.size(), name, first);
  }
  return written;
}

// Guards catch what is far outside; bytes on the same page as the array are caught by the filler.
std::string overrun(const std::vector<std::uint8_t>& file, const Segment& segment,
                    std::uint8_t filler, const char* name) {
  const auto page = [&](std::int64_t byte) {
    return file[static_cast<std::size_t>(segment.file_offset + byte)];
  };
  const std::int64_t end = segment.lead + segment.bytes;
  for (std::int64_t i = end; i < segment.pages * kPage; ++i) {
    if (page(i) != filler) {
      return fmt::format("it wrote past the end of {} (byte {} after it)", name, i - end);
    }
  }
  for (std::int64_t i = segment.lead - 1; i >= 0; --i) {
    if (page(i) != filler) {
      return fmt::format("it wrote before the start of {} (byte {} before it)", name,
                         segment.lead - i);
    }
  }
  return "";
}

}  // namespace ringlab::plugins
