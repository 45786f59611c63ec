#include "reference/core/machine/plain_text.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"

namespace ringlab {
namespace {

TEST(PlainText, has_no_control_characters_but_ends_of_lines_and_tabs) {
  for (int byte = 0; byte < 0x100; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const bool steers =
        (byte < 0x20 && byte != '\n' && byte != '\t') || (byte >= 0x7f && byte <= 0x9f);
    EXPECT_EQ(plain_text(text), steers ? "?" : text) << byte;
  }
  EXPECT_EQ(plain_text("\x1b[2J\x1b]0;title\a"), "?[2J?]0;title?");
  EXPECT_EQ(plain_text("\xc2\x9b"
                       "2J"),
            "?2J");  // CSI of Unicode
  EXPECT_EQ(plain_text("a\xe2\x80\xae"
                       "fdp"),
            "a?fdp");                          // right to left
  EXPECT_EQ(plain_text("\xe0\x82\x9b"), "?");  // in too many bytes
}

TEST(PlainText, keeps_everything_else) {
  for (const std::string& text : std::initializer_list<std::string>{
           "", "größe → 2^40\n\tё 漢字 🙂", "caf\xe9", "\xc3", "\xf0\xa0"}) {
    EXPECT_EQ(plain_text(text), text);
  }
}

TEST(PlainText, of_json_means_the_same) {
  EXPECT_EQ(plain_json("{\n\"gr\xc3\xb6\xc3\x9f"
                       "e\": \"\xc2\x9b\x7f\xe2\x80\xae\"}"),
            "{\n\"gr\xc3\xb6\xc3\x9f"
            "e\": \"\\u009b\\u007f\\u202e\"}");
}

TEST(PlainText, is_what_errors_are_made_of) {
  const Error error(ErrorKind::input, {.where = "a\x1b[2J", .actual = "b\r", .hint = "c\x7f"});
  EXPECT_STREQ(error.what(), "a?[2J: b?. c?");
}

}  // namespace
}  // namespace ringlab
