#include "property_tests/plugins/arrays/sparse_arrays.h"

#include <cstring>
#include <map>
#include <vector>

#include "property_tests/plugins/arrays/elements.h"

namespace ringlab::plugins {
namespace {

// The most runs and pages of one array: fewer mappings than a process may have.
constexpr std::size_t kMostRuns = 4096;
constexpr std::size_t kMostPages = 16384;

/// File offsets of the pages of an array that have elements, by page number.
using TouchedPages = std::map<std::int64_t, std::int64_t>;

/// Bytes from the array's first page to an element.
struct Places {
  const Segment& segment;
  const Strides& strides;
  std::int64_t size;
  std::int64_t of(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
    const std::int64_t offset =
        b * strides.batch + h * strides.head + t * strides.token + c * strides.channel;
    return segment.lead + segment.origin + offset * size;
  }
};

/// Adds the pages to the file and returns them as runs.
std::vector<PageRun> runs_of(TouchedPages& touched, Pages& pages) {
  std::vector<PageRun> runs;
  for (auto& [page, file_offset] : touched) {
    file_offset = pages.add_pages(1);
    if (!runs.empty() && runs.back().page + runs.back().pages == page) {
      ++runs.back().pages;
    } else {
      runs.push_back({.page = page, .pages = 1, .file_offset = file_offset});
    }
  }
  return runs;
}

}  // namespace

std::optional<Segment> add_sparse_tensor(Pages& pages, const TensorView<const double>& values,
                                         DType dtype, ringlab_tensor& shape) {
  const Extents& e = values.extents;
  const Span span = span_of(e, values.strides);
  const std::int64_t size = size_of(dtype);
  Segment segment = pages.place(span.elements() * size);
  segment.origin = -span.low * size;
  segment.address = address_for(values.data);
  const Places places{segment, values.strides, size};
  TouchedPages touched;
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    if (touched.size() <= kMostPages) touched[places.of(b, h, t, c) / kPage] = 0;
  });
  if (touched.size() > kMostPages) return std::nullopt;
  const std::vector<PageRun> runs = runs_of(touched, pages);
  if (runs.size() > kMostRuns) return std::nullopt;
  for (const auto& [page, file_offset] : touched) {
    fill_with_nan(pages.at(file_offset), kPage / size, dtype, 1);
  }
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    const std::int64_t place = places.of(b, h, t, c);
    encode(pages.at(touched.at(place / kPage) + place % kPage), dtype, values(b, h, t, c));
  });
  segment.runs = std::ssize(runs);
  const std::int64_t bytes = segment.runs * std::int64_t{sizeof(PageRun)};
  segment.file_offset = pages.add_pages(rounded_up(bytes, kPage) / kPage);
  std::memcpy(pages.at(segment.file_offset), runs.data(), static_cast<std::size_t>(bytes));
  describe(e, values.strides, dtype, shape);
  return segment;
}

}  // namespace ringlab::plugins
