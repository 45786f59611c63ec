// JSON from outside is refused before anything is built of it.
#include "reference/io/outside_json.h"

#include <gtest/gtest.h>

#include <chrono>

#include "reference/core/error.h"

namespace ringlab::io {
namespace {

constexpr JsonLimits kSmall{.what = "list", .depth = 3, .keys = 4, .values = 10};

/// The message; empty where the text is taken.
std::string refusal(const std::string& text, const JsonLimits& limits = kSmall) {
  try {
    check_json(text, limits, "x.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(error.what()).find("x.json: expected "), 0u) << error.what();
    return error.what();
  }
  return "";
}

void refuses(const std::string& text, const std::string& why, const JsonLimits& limits = kSmall) {
  EXPECT_NE(refusal(text, limits).find(why), std::string::npos)
      << text.substr(0, 80) << ": " << refusal(text, limits);
}

TEST(OutsideJson, within_its_limits_is_taken) {
  for (const char* text : {"1", "[]", " {\"a\":[{}]} ", R"([0,1,2,3,4,5,6,7,"x"])",
                           R"({"a":1,"b":2,"c":3,"d":4})", R"([{"a":1},{"a":1}])"}) {
    EXPECT_EQ(refusal(text), "") << text;
  }
}

TEST(OutsideJson, beyond_a_limit_is_refused) {
  refuses("[[[[]]]]", "a list at most 3 levels deep");
  refuses(R"({"a":{"b":{"c":{}}}})", "3 levels");
  refuses(R"({"a":1,"b":2,"c":3,"d":4,"e":5})", "at most 4 keys");
  refuses("[0,1,2,3,4,5,6,7,8,9]", "at most 10 values");
  refuses(R"({"a":1,"b":{"a":1,"a":2}})", "\"a\" twice");
}

TEST(OutsideJson, that_is_none_is_refused) {
  for (const std::string& text : std::initializer_list<std::string>{
           "", "[", "]", "[1,]", "{1:2}", "\xff", "\"\xff\"", "nul", "1 2"}) {
    refuses(text, "a JSON list");
  }
  refuses(std::string("[]\0", 3), "a NUL byte");
  refuses("1e999", "a JSON list");
}

TEST(OutsideJson, however_deep_or_broad_costs_neither_stack_nor_time) {
  const auto begin = std::chrono::steady_clock::now();
  constexpr JsonLimits kLarge{.what = "file", .depth = 16, .keys = 1 << 20, .values = 1 << 22};
  refuses(std::string(5'000'000, '['), "16 levels", kLarge);
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  refuses(objects, "16 levels", kLarge);
  std::string keys = "{";
  for (int i = 0; i < 300'000; ++i) keys += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal(keys + "}", kLarge), "");
  refuses(keys + "}", "at most 64 keys",
          {.what = "file", .depth = 16, .keys = 64, .values = 1 << 22});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace ringlab::io
