#include "reference/core/error.h"

#include <gtest/gtest.h>

namespace ringlab {
namespace {

TEST(ErrorTest, the_message_says_where_expected_found_and_what_to_do) {
  const Error error(
      ErrorKind::input,
      {.where = "q.npy", .expected = "4 dimensions", .actual = "5", .hint = "Squeeze one"});
  EXPECT_STREQ(error.what(), "q.npy: expected 4 dimensions, found 5. Squeeze one");
}

TEST(ErrorTest, parts_left_empty_are_left_out) {
  const auto text = [](ErrorParts parts) {
    return std::string(Error(ErrorKind::usage, std::move(parts)).what());
  };
  EXPECT_EQ(text({.expected = "a", .actual = "b"}), "expected a, found b");
  EXPECT_EQ(text({.where = "w", .actual = "b broke"}), "w: b broke");
  EXPECT_EQ(text({.where = "w", .expected = "a"}), "w: expected a");
  EXPECT_EQ(text({.where = "w", .actual = "b", .hint = "Do c"}), "w: b. Do c");
  EXPECT_EQ(text({.where = "w", .hint = "Do c"}), "w: Do c");
  EXPECT_EQ(text({}), "");
}

TEST(ErrorTest, kinds_are_the_exit_codes_of_the_program) {
  const auto code = [](void (*thrower)(ErrorParts)) {
    try {
      thrower({.where = "x"});
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().where, "x");
      return error.exit_code();
    }
    return -1;
  };
  EXPECT_EQ(code(throw_usage_error), 2);
  EXPECT_EQ(code(throw_input_error), 3);
  EXPECT_EQ(code(throw_environment_error), 4);
}

}  // namespace
}  // namespace ringlab
