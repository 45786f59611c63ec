#include "reference/core/overflow.h"

#include <gtest/gtest.h>

namespace ringlab {
namespace {

std::string note(DType dtype, double scale, double norm) {
  return overflow_note({.shape = {}, .dtype = dtype, .scale = scale, .mask = {}}, norm, norm);
}

TEST(OverflowTest, a_note_says_the_number_that_was_compared) {
  EXPECT_NE(note(DType::f32, 0.5, 1e20).find("that q·k may overflow: up to 1e+40 where f32 ends"),
            std::string::npos);
  EXPECT_NE(note(DType::f32, -1e30, 1e5)
                .find("that scale · q·k may overflow: up to 1e+40 where f32 ends at 3.4e+38; NaN"),
            std::string::npos);
  EXPECT_NE(note(DType::f64, 1e300, 1e5)
                .find("up to inf where f64 ends at 1.8e+308; NaN and "
                      "infinities in the result come from there"),
            std::string::npos);
}

TEST(OverflowTest, nothing_is_said_where_no_score_can) {
  EXPECT_EQ(note(DType::f32, 1e-30, 1e19), "");
  EXPECT_EQ(note(DType::f32, 1e27, 1e5), "");
  EXPECT_EQ(note(DType::f64, 1e30, 1e20), "");
}

}  // namespace
}  // namespace ringlab
