#include "reference/core/problem.h"

#include <gtest/gtest.h>

#include <limits>

#include "reference/core/error.h"

namespace ringlab {
namespace {

Problem sound_problem() {
  Problem problem;
  problem.shape = {.batch = 2,
                   .q_heads = 6,
                   .kv_heads = 3,
                   .q_tokens = 5,
                   .kv_tokens = 7,
                   .head_dim = 4,
                   .v_dim = 3};
  problem.mask = Mask({CausalMask{}}).bind(5, 7);
  return problem;
}

/// The message for a problem changed by `change`, or "accepted".
template <class Change>
std::string verdict(const Change& change, ErrorKind kind = ErrorKind::input) {
  Problem problem = sound_problem();
  change(problem);
  try {
    check_problem(problem);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "accepted";
}

TEST(ProblemTest, a_sound_problem_is_accepted) {
  EXPECT_EQ(verdict([](Problem&) {}), "accepted");
}

TEST(ProblemTest, the_tensors_have_the_documented_shapes) {
  const Shape shape = sound_problem().shape;
  EXPECT_EQ(shape.q(), (Extents{2, 6, 5, 4}));
  EXPECT_EQ(shape.k(), (Extents{2, 3, 7, 4}));
  EXPECT_EQ(shape.v(), (Extents{2, 3, 7, 3}));
  EXPECT_EQ(shape.out(), (Extents{2, 6, 5, 3}));
  EXPECT_EQ(shape.lse(), (Extents{2, 6, 5, 1}));
}

TEST(ProblemTest, batch_and_tokens_may_be_zero) {
  EXPECT_EQ(verdict([](Problem& p) { p.shape.batch = 0; }), "accepted");
  EXPECT_EQ(verdict([](Problem& p) {
              p.shape.q_tokens = 0;
              p.mask = p.mask.bind(0, 7);
            }),
            "accepted");
  EXPECT_EQ(verdict([](Problem& p) {
              p.shape.q_tokens = p.shape.kv_tokens = 0;
              p.mask = Mask();
            }),
            "accepted");
}

TEST(ProblemTest, extents_too_small_are_input_errors_that_name_them) {
  EXPECT_EQ(verdict([](Problem& p) { p.shape.batch = -1; }),
            "batch: expected at least 0, found -1");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.q_heads = 0; }),
            "q_heads: expected at least 1, found 0");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.kv_heads = 0; }),
            "kv_heads: expected at least 1, found 0");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.q_tokens = -3; }),
            "q_tokens: expected at least 0, found -3");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.kv_tokens = -3; }),
            "kv_tokens: expected at least 0, found -3");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.head_dim = 0; }),
            "head_dim: expected at least 1, found 0");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.v_dim = 0; }), "v_dim: expected at least 1, found 0");
}

TEST(ProblemTest, sizes_that_overflow_are_input_errors) {
  EXPECT_NE(verdict([](Problem& p) { p.shape.batch = std::int64_t{1} << 60; }), "accepted");
  EXPECT_NE(verdict([](Problem& p) { p.shape.v_dim = std::int64_t{1} << 60; }), "accepted");
}

TEST(ProblemTest, query_heads_group_evenly_over_kv_heads) {
  EXPECT_EQ(verdict([](Problem& p) { p.shape.kv_heads = 4; }),
            "q_heads: expected a multiple of the 4 K/V heads, found 6. Grouped queries share one "
            "K/V head per group of equal size");
  EXPECT_NE(verdict([](Problem& p) { p.shape.kv_heads = 12; }), "accepted");
  EXPECT_EQ(verdict([](Problem& p) { p.shape.kv_heads = 1; }), "accepted");
}

TEST(ProblemTest, the_scale_is_finite) {
  for (const double scale :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(verdict([=](Problem& p) { p.scale = scale; }), "accepted");
  }
  for (const double scale : {0.0, -1.0, 1e300}) {
    EXPECT_EQ(verdict([=](Problem& p) { p.scale = scale; }), "accepted");
  }
}

TEST(ProblemTest, the_mask_is_bound_to_the_lengths) {
  EXPECT_EQ(verdict([](Problem& p) { p.mask = p.mask.bind(5, 8); }),
            "mask causal: expected bound to 5 queries and 7 keys, found 5 queries and 8 keys. Call "
            "Mask::bind with the lengths of the problem");
  EXPECT_NE(verdict([](Problem& p) { p.mask = Mask(); }), "accepted");
}

TEST(ProblemTest, fp8_is_a_usage_error) {
  EXPECT_NE(verdict([](Problem& p) { p.dtype = DType::fp8_e4m3; }, ErrorKind::usage), "accepted");
}

TEST(ProblemTest, the_customary_scale_is_one_over_the_root_of_head_dim) {
  EXPECT_EQ(default_scale(1), 1.0);
  EXPECT_EQ(default_scale(64), 0.125);
  EXPECT_THROW(default_scale(0), Error);
  EXPECT_THROW(default_scale(-4), Error);
}

}  // namespace
}  // namespace ringlab
