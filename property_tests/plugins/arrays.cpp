#include "property_tests/plugins/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "property_tests/plugins/plugin_profile.h"

namespace ringlab::plugins {
namespace {

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t size_of(DType dtype) { return dtype_info(dtype).bytes; }

/// A number of `dtype` in its own bits.
template <class Bits>
void put(std::uint8_t* at, Bits bits) {
  std::memcpy(at, &bits, sizeof(bits));
}

void encode(std::uint8_t* at, DType dtype, double value) {
  with_element_type(dtype, [&](auto element) { put(at, decltype(element)(value)); });
}

double decode(const std::uint8_t* at, DType dtype) {
  return with_element_type(dtype, [&](auto element) {
    std::memcpy(&element, at, sizeof(element));
    return static_cast<double>(element);
  });
}

/// A signalling NaN of `dtype`: quiet bit clear, the lowest bits of `mark` among the others.
std::uint64_t signalling_nan(DType dtype, std::uint64_t mark) {
  switch (dtype) {
    case DType::f64:
      return 0x7ff4000000000000u | (mark & 0xffffffffffffu);
    case DType::f32:
      return 0x7fa00000u | (mark & 0xfffffu);
    case DType::f16:
      return 0x7d00u | (mark & 0xffu);
    default:
      return 0x7fa0u | (mark & 0x1fu);
  }
}

/// Signalling NaN, so that a plugin that reads what nobody wrote gets NaN, and one that forgets to
/// write is told from one that computed a (quiet) NaN.
void fill_with_nan(std::uint8_t* at, std::int64_t elements, DType dtype, std::uint64_t mark) {
  const std::uint64_t bits = signalling_nan(dtype, mark);  // little-endian: its low bytes first
  const auto size = static_cast<std::size_t>(size_of(dtype));
  for (std::int64_t i = 0; i < elements; ++i, at += size) std::memcpy(at, &bits, size);
}

/// Extents and strides in elements, (batch, heads, tokens, channels).
void describe(const Extents& e, const Strides& s, DType dtype, ringlab_tensor& shape) {
  shape = {};
  shape.dtype = dtype_index(dtype);
  const std::int64_t extents[] = {e.batch, e.heads, e.tokens, e.channels};
  const std::int64_t strides[] = {s.batch, s.head, s.token, s.channel};
  std::copy(std::begin(extents), std::end(extents), shape.extents);
  std::copy(std::begin(strides), std::end(strides), shape.strides);
}

/// The lowest and the highest offset of any element.
struct Span {
  std::int64_t low = 0, high = 0;
  std::int64_t elements() const { return high - low + 1; }
};

Span span_of(const Extents& e, const Strides& s) {
  Span span;
  const std::int64_t steps[] = {(e.batch - 1) * s.batch, (e.heads - 1) * s.head,
                                (e.tokens - 1) * s.token, (e.channels - 1) * s.channel};
  for (const std::int64_t step : steps) (step < 0 ? span.low : span.high) += step;
  return span;
}

/// The caller's memory order, unless it wastes too much.
Strides kept_strides(const TensorView<const double>& values) {
  constexpr std::int64_t kMostWaste = 8;
  const std::int64_t elements = values.extents.size();
  const bool small = elements > 0 && span_of(values.extents, values.strides).elements() <=
                                         kMostWaste * elements + kPage;
  return small ? values.strides : dense_strides(values.extents);
}

/// One address for one place in our memory, always: a plugin that caches by address shows when
/// the numbers there change.
std::uint64_t address_for(const void* place) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(place) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  constexpr std::uint64_t kFirst = 0x200000000000u, kRange = 0x200000000000u;
  constexpr std::uint64_t kSpacing = std::uint64_t{1} << 24;
  return kFirst + hash % (kRange / kSpacing) * kSpacing;
}

template <class Number>
Segment add_array(Pages& pages, const std::vector<Number>& numbers) {
  const Segment segment = pages.add(std::ssize(numbers) * std::int64_t{sizeof(Number)});
  std::memcpy(pages.array(segment), numbers.data(), static_cast<std::size_t>(segment.bytes));
  return segment;
}

}  // namespace

Segment Pages::add(std::int64_t bytes) {
  Segment segment;
  segment.file_offset = std::ssize(bytes_);
  segment.pages = std::max<std::int64_t>(1, rounded_up(bytes, kPage) / kPage);
  segment.bytes = bytes;
  if (placement_ == Placement::at_the_end) {
    segment.lead = segment.pages * kPage - rounded_up(bytes, kAlignment);
  }
  bytes_.resize(bytes_.size() + static_cast<std::size_t>(segment.pages * kPage), filler_);
  return segment;
}

// Gaps between the elements hold NaN: a plugin that takes strided inputs for dense shows at once.
Segment add_tensor(Pages& pages, const TensorView<const double>& values, DType dtype,
                   ringlab_tensor& shape) {
  const Extents& e = values.extents;
  const Strides strides = kept_strides(values);
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
