// Modifiers: what is accepted, the customary slopes, thresholds, texts.
#include "reference/core/modifiers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/core/error.h"
#include "reference/core/problem.h"

namespace ringlab {
namespace {

constexpr Shape kShape{.batch = 1,
                       .q_heads = 2,
                       .kv_heads = 1,
                       .q_tokens = 3,
                       .kv_tokens = 4,
                       .head_dim = 2,
                       .v_dim = 2};

void expect_refused(const Modifiers& modifiers, const std::string& where,
                    const Shape& shape = kShape) {
  try {
    check_modifiers(modifiers, shape);
    ADD_FAILURE() << modifiers_text(modifiers) << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(error.parts().where.find(where), std::string::npos) << error.what();
  }
}

TEST(Modifiers, are_none_by_default) {
  EXPECT_FALSE(Modifiers{}.any());
  EXPECT_EQ(modifiers_text({}), "none");
  EXPECT_NO_THROW(check_modifiers({}, kShape));
  EXPECT_NO_THROW(refuse_modifiers({}, "anything"));
}

TEST(Modifiers, of_every_kind_count_as_modified_and_are_refused_by_what_knows_none) {
  const Modifiers each[] = {
      {.softcap = 30}, {.alibi_slopes = {0.5, 0.25}}, {.sinks = {0, 0}}, {.dropout = 0.1}};
  for (const Modifiers& modifiers : each) {
    EXPECT_TRUE(modifiers.any());
    EXPECT_NO_THROW(check_modifiers(modifiers, kShape));
    EXPECT_THROW(refuse_modifiers(modifiers, "ring"), Error);
  }
}

TEST(Modifiers, out_of_range_are_input_errors_that_say_which) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, nan, inf, 0x1p65, 0x1p-65}) {
    expect_refused({.softcap = bad}, "softcap");
  }
  for (const double bad : {nan, inf, -inf, 0x1p65, 0x1p-65}) {
    expect_refused({.alibi_slopes = {0.5, bad}}, "ALiBi");
  }
  for (const double bad : {nan, inf, -inf, 0x1p65}) expect_refused({.sinks = {bad, 0}}, "sink");
  for (const double bad : {-0.1, 1.0, 1 - 0x1p-33, nan, inf}) {
    expect_refused({.dropout = bad}, "dropout");
  }
}

TEST(Modifiers, need_one_number_per_query_head) {
  expect_refused({.alibi_slopes = {0.5}}, "ALiBi");
  expect_refused({.sinks = {1, 2, 3}}, "sinks");
}

TEST(Modifiers, of_dropout_refuse_what_their_generator_cannot_count) {
  Shape shape = kShape;
  shape.kv_tokens = std::int64_t{1} << 34;
  expect_refused({.dropout = 0.5}, "kv_tokens", shape);
  EXPECT_NO_THROW(check_modifiers({.softcap = 1}, shape));
  shape.kv_tokens -= 1;
  EXPECT_NO_THROW(check_modifiers({.dropout = 0.5}, shape));
  shape.q_tokens = std::int64_t{1} << 32;
  expect_refused({.dropout = 0.5}, "q_tokens", shape);
}

TEST(AlibiSlopes, of_a_power_of_two_are_the_geometric_series_of_the_paper) {
  const std::vector<double> eight = default_alibi_slopes(8);
  ASSERT_EQ(eight.size(), 8u);
  for (int h = 0; h < 8; ++h) {
    EXPECT_EQ(eight[static_cast<std::size_t>(h)], std::ldexp(1.0, -(h + 1)));
  }
  EXPECT_EQ(default_alibi_slopes(1), std::vector<double>{0x1p-8});
  EXPECT_EQ(default_alibi_slopes(2), (std::vector<double>{0x1p-4, 0x1p-8}));
}

TEST(AlibiSlopes, between_powers_of_two_take_every_other_one_of_the_next_series) {
  const std::vector<double> twelve = default_alibi_slopes(12);
  ASSERT_EQ(twelve.size(), 12u);
  const std::vector<double> sixteen = default_alibi_slopes(16);
  for (std::size_t h = 0; h < 8; ++h) EXPECT_EQ(twelve[h], std::ldexp(1.0, -(int(h) + 1)));
  for (std::size_t h = 8; h < 12; ++h) EXPECT_EQ(twelve[h], sixteen[2 * (h - 8)]);
  EXPECT_EQ(default_alibi_slopes(3), (std::vector<double>{0x1p-4, 0x1p-8, 0x1p-2}));
  EXPECT_THROW(default_alibi_slopes(0), Error);
}

TEST(DropoutThreshold, is_the_share_of_all_words_that_are_dropped) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.25), 0x40000000u);
  EXPECT_EQ(dropout_threshold(1 - 0x1p-32), 0xFFFFFFFFu);
  EXPECT_EQ(dropout_threshold(0x1p-33), 1u);  // halves round away from zero
  EXPECT_EQ(dropout_threshold(0x1p-34), 0u);
  EXPECT_EQ(dropout_factor(0.75), 4);
}

TEST(ModifiersText, is_equal_for_equal_modifiers_only) {
  const Modifiers all{.softcap = 50,
                      .alibi_slopes = {0.5, 0.1},
                      .sinks = {0, -1.5},
                      .dropout = 0.1,
                      .dropout_seed = 7};
  EXPECT_EQ(modifiers_text(all), "softcap:50+alibi:0.5,0.1+sinks:0,-1.5+dropout:0.1,seed:7");
  Modifiers other = all;
  other.alibi_slopes[1] = std::nextafter(0.1, 1);
  EXPECT_NE(modifiers_text(other), modifiers_text(all));
  other = all;
  other.dropout_seed = 8;
  EXPECT_NE(modifiers_text(other), modifiers_text(all));
}

TEST(Problem, with_modifiers_out_of_range_is_refused) {
  Problem problem{.shape = kShape, .mask = Mask().bind(3, 4)};
  EXPECT_NO_THROW(check_problem(problem));
  problem.modifiers.softcap = -1;
  EXPECT_THROW(check_problem(problem), Error);
}

}  // namespace
}  // namespace ringlab
