#include "reference/core/run.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"

namespace ringlab {
namespace {

TEST(MakeLayoutTest, follows_the_options) {
  const RunOptions options = {.ranks = 3, .layout = LayoutKind::striped};
  const Layout layout = make_layout(options, 8, std::nullopt);
  EXPECT_EQ(layout.kind(), LayoutKind::striped);
  EXPECT_EQ(layout.ranks(), 3);
  EXPECT_EQ(layout.tokens(), 8);
}

TEST(MakeLayoutTest, an_override_takes_the_place_of_the_options) {
  const RunOptions options = {.ranks = 3, .layout = LayoutKind::striped};
  const Layout layout = make_layout(options, 8, Layout::with_lengths({0, 7, 1}));
  EXPECT_EQ(layout.positions(1), Layout::with_lengths({0, 7, 1}).positions(1));
}

TEST(MakeLayoutTest, an_override_for_other_tokens_or_ranks_is_an_input_error) {
  const RunOptions options = {.ranks = 3};
  for (const Layout& layout : {Layout::with_lengths({4, 4}), Layout::with_lengths({4, 4, 1})}) {
    try {
      make_layout(options, 8, layout);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find("8 tokens over 3 ranks"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace ringlab
