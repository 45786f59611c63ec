// Tensors on pages, and what became of them.
#include "property_tests/plugins/arrays/arrays.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "property_tests/laws/structure/sparse_memory.h"

namespace ringlab::plugins {
namespace {

using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr std::uint8_t kFiller = 0xc7;
constexpr std::uint64_t kMark = 12345;

TEST(Arrays, an_output_that_nobody_wrote_is_all_unwritten_nan) {
  for (const DType dtype : kTypes) {
    Pages pages(Placement::at_the_end, kFiller);
    ringlab_tensor shape{};
    const Extents extents{2, 1, 3, 2};
    const Segment segment = add_output(pages, extents, dtype, kMark, shape);
    const Written written = read_output(pages.bytes(), segment, extents, dtype, kMark, "o");
    EXPECT_THAT(written.complaint, HasSubstr("12 of 12 elements of o unwritten"));
    for (const double value : written.values.values()) EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(overrun(pages.bytes(), segment, kFiller, "o"), "");
  }
}

TEST(Arrays, one_element_left_out_is_named) {
  Pages pages(Placement::at_the_start, kFiller);
  ringlab_tensor shape{};
  const Extents extents{1, 2, 2, 2};
  const Segment segment = add_output(pages, extents, DType::f32, kMark, shape);
  std::vector<std::uint8_t> bytes = pages.bytes();
  std::memset(bytes.data() + segment.lead, 0, 5 * sizeof(float));
  std::memset(bytes.data() + segment.lead + 6 * sizeof(float), 0, 2 * sizeof(float));
  EXPECT_THAT(read_output(bytes, segment, extents, DType::f32, kMark, "dq").complaint,
              HasSubstr("1 of 8 elements of dq unwritten, the first [batch 0, head 1, token 0, "
                        "channel 1]"));
}

TEST(Arrays, every_byte_beside_an_output_is_watched) {
  for (const Placement placement : {Placement::at_the_end, Placement::at_the_start}) {
    Pages pages(placement, kFiller);
    ringlab_tensor shape{};
    pages.add(100);
    const Segment segment = add_output(pages, {1, 1, 5, 3}, DType::f16, kMark, shape);
    for (std::int64_t i = 0; i < segment.pages * kPage; ++i) {
      std::vector<std::uint8_t> bytes = pages.bytes();
      bytes[static_cast<std::size_t>(segment.file_offset + i)] ^= 1;
      const bool inside = i >= segment.lead && i < segment.lead + segment.bytes;
      EXPECT_EQ(overrun(bytes, segment, kFiller, "o").empty(), inside) << i;
    }
  }
}

TEST(Arrays, an_array_at_the_end_leaves_less_than_an_alignment_behind_it) {
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 9000}) {
    Pages pages(Placement::at_the_end, kFiller);
    const Segment segment = pages.add(bytes);
    const std::int64_t behind = segment.pages * kPage - segment.lead - bytes;
    EXPECT_GE(behind, 0) << bytes;
    EXPECT_LT(behind, kAlignment) << bytes;
    EXPECT_EQ(segment.lead % kAlignment, 0) << bytes;
  }
}

TEST(Arrays, a_strided_tensor_keeps_its_order_and_has_nan_in_its_gaps) {
  std::vector<double> memory(24);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<double>(i);
  const TensorView<const double> view{memory.data() + 20, {1, 1, 3, 2}, {0, 0, -8, 2}};
  for (const DType dtype : kTypes) {
    Pages pages(Placement::at_the_end, 0xff);
    ringlab_tensor shape{};
    const Segment segment = add_tensor(pages, view, dtype, shape);
    EXPECT_EQ(shape.strides[2], -8);
    EXPECT_EQ(shape.strides[3], 2);
    const std::int64_t size = dtype_info(dtype).bytes;
    EXPECT_EQ(segment.origin, 16 * size);
    EXPECT_EQ(segment.bytes, 19 * size);
    const Written all =
        read_output(pages.bytes(), segment, {1, 1, 1, 19}, dtype, 1, "everything in the span");
    for (std::int64_t i = 0; i < 19; ++i) {
      const bool element = i % 8 == 0 || (i % 8 == 2 && i > 0);
      const double value = all.values(0, 0, 0, i);
      if (element) {
        EXPECT_EQ(value, static_cast<double>(i + 4)) << i;
      } else {
        EXPECT_TRUE(std::isnan(value)) << i;
      }
    }
  }
}

/// A page of a sparse array; nothing where it is not there.
const std::uint8_t* page_of(Pages& pages, const Segment& segment, std::int64_t page) {
  std::vector<PageRun> runs(static_cast<std::size_t>(segment.runs));
  std::memcpy(runs.data(), pages.at(segment.file_offset), runs.size() * sizeof(PageRun));
  for (const PageRun& run : runs) {
    if (page < run.page || page >= run.page + run.pages) continue;
    return pages.at(run.file_offset + (page - run.page) * kPage);
  }
  return nullptr;
}

TEST(Arrays, a_tensor_larger_than_memory_has_the_pages_of_its_elements_and_no_other) {
  constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 5;
  verify::SparseMemory memory(2 * kFar + 1);
  for (std::int64_t t = 0; t < 3; ++t) memory.touch(t * kFar) = static_cast<double>(t + 1);
  const TensorView<const double> view{&memory.touch(2 * kFar), {1, 1, 3, 1}, {0, 0, -kFar, 1}};
  for (const Placement placement : {Placement::at_the_end, Placement::at_the_start}) {
    Pages pages(placement, 0xff);
    ringlab_tensor shape{};
    const Segment segment = add_tensor(pages, view, DType::f32, shape);
    EXPECT_EQ(segment.runs, 3);
    EXPECT_EQ(shape.strides[2], -kFar);
    EXPECT_EQ(segment.bytes, (2 * kFar + 1) * 4);
    EXPECT_EQ(segment.origin, 2 * kFar * 4);
    EXPECT_EQ(pages.bytes().size(), 4u * kPage) << "three pages and their list";
    for (std::int64_t t = 0; t < 3; ++t) {
      const std::int64_t place = segment.lead + segment.origin - t * kFar * 4;
      const std::uint8_t* page = page_of(pages, segment, place / kPage);
      ASSERT_NE(page, nullptr);
      float element = 0, other = 0;
      std::memcpy(&element, page + place % kPage, sizeof(element));
      std::memcpy(&other, page + (place + 4) % kPage, sizeof(other));
      EXPECT_EQ(element, 3 - static_cast<float>(t));
      EXPECT_TRUE(std::isnan(other));
      EXPECT_EQ(page_of(pages, segment, place / kPage + 1), nullptr);
    }
  }
}

TEST(Arrays, a_sparse_tensor_of_too_many_pages_is_made_dense) {
  constexpr std::int64_t kRows = 5000, kStride = 2 * kPage;
  verify::SparseMemory memory(kRows * kStride);
  for (std::int64_t t = 0; t < kRows; ++t) memory.touch(t * kStride) = static_cast<double>(t);
  Pages pages(Placement::at_the_end, 0xff);
  ringlab_tensor shape{};
  const TensorView<const double> view{&memory.touch(0), {1, 1, kRows, 1}, {0, 0, kStride, 1}};
  EXPECT_EQ(add_tensor(pages, view, DType::f64, shape).runs, 0);
  EXPECT_EQ(shape.strides[2], 1);
}

TEST(Arrays, the_same_place_gets_the_same_address_and_another_place_another) {
  const Tensor<double> a({1, 1, 2, 2}), b({1, 1, 2, 2});
  ringlab_tensor shape{};
  Pages pages(Placement::at_the_end, 0xff);
  const std::uint64_t first = add_tensor(pages, a.view(), DType::f32, shape).address;
  EXPECT_EQ(add_tensor(pages, a.view(), DType::f16, shape).address, first);
  EXPECT_NE(add_tensor(pages, b.view(), DType::f32, shape).address, first);
  EXPECT_EQ(first % kPage, 0u);
}

}  // namespace
}  // namespace ringlab::plugins
