#include "reference/core/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

void expect_input_error(const Extents& extents) {
  try {
    checked_size(extents);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find(std::to_string(extents.batch)), std::string::npos);
  }
}

TEST(TensorTest, sizes_that_cannot_be_addressed_are_input_errors) {
  expect_input_error({kHuge, kHuge, 1, 1});
  expect_input_error({2, INT64_MAX, 1, 1});
  expect_input_error({kHuge, 1 << 19, 1, 1});
  EXPECT_EQ(checked_size({kHuge, (1 << 19) - 1, 1, 1}), kHuge * ((1 << 19) - 1));
}

TEST(TensorTest, negative_extents_are_input_errors_even_beside_a_zero) {
  expect_input_error({-1, 1, 1, 1});
  expect_input_error({-3, 0, 1, 1});
  expect_input_error({1, 1, -2, -2});
}

TEST(TensorTest, a_zero_extent_gives_no_elements_but_hides_no_overflow) {
  EXPECT_EQ(checked_size({0, 3, 4, 5}), 0);
  EXPECT_EQ(checked_size({2, 3, 0, 5}), 0);
  expect_input_error({0, kHuge, kHuge, 1});
  expect_input_error({kHuge, kHuge, 0, 1});
}

TEST(TensorTest, beside_a_zero_extent_there_is_little_to_count_through) {
  EXPECT_EQ(checked_size({1 << 10, 1 << 7, 0, 1 << 7}), 0);
  expect_input_error({kHuge, 1, 0, 1});
  expect_input_error({1, kHuge, 0, 1});
  expect_input_error({kHuge, 0, 1, 1});
  expect_input_error({(1 << 24) + 1, 1, 0, 1});
  EXPECT_EQ(checked_size({(1 << 24) + 1, 1, 1, 1}), (1 << 24) + 1);
}

TEST(TensorTest, elements_lie_row_major_with_channels_innermost) {
  Tensor<int> tensor({2, 3, 4, 5});
  std::iota(tensor.values().begin(), tensor.values().end(), 0);
  int next = 0;
  for_each_index(tensor.extents(), [&](auto b, auto h, auto t, auto c) {
    EXPECT_EQ(tensor(b, h, t, c), next);
    EXPECT_EQ(tensor.view()(b, h, t, c), next);
    ++next;
  });
  EXPECT_EQ(next, 120);
  EXPECT_EQ(tensor.size(), 120);
}

TEST(TensorTest, a_strided_view_reads_the_elements_it_names) {
  Tensor<int> tensor({1, 2, 3, 4});
  std::iota(tensor.values().begin(), tensor.values().end(), 0);
  TensorView<const int> reversed = tensor.view();
  reversed.data = &tensor(0, 0, 2, 0);
  reversed.strides.token = -reversed.strides.token;
  reversed.strides.head = 12;
  EXPECT_EQ(reversed(0, 1, 0, 3), tensor(0, 1, 2, 3));
  EXPECT_EQ(reversed(0, 0, 2, 1), tensor(0, 0, 0, 1));
}

TEST(TensorTest, empty_tensors_hold_nothing_and_visit_nothing) {
  const Tensor<float> tensor({2, 0, 3, 4});
  EXPECT_EQ(tensor.size(), 0);
  for_each_index(tensor.extents(), [](auto, auto, auto, auto) { ADD_FAILURE(); });
  EXPECT_EQ(Tensor<float>().size(), 0);
}

}  // namespace
}  // namespace ringlab
