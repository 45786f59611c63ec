// The plugins of docs/plugins, under all laws.
#include <gmock/gmock.h>

#include <filesystem>

#include "property_tests/verify.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/plugins/plugin_folder.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

constexpr int kCases = 12;

void expect_right(const std::string& name, int least_laws) {
  expect_laws_kept(plugin_named(name), {.cases_per_law = kCases}, least_laws);
}

TEST(ExamplePlugins, the_template_is_right) { expect_right("template", 40); }
TEST(ExamplePlugins, the_flash_loop_is_right) { expect_right("flash1", 40); }
TEST(ExamplePlugins, matrix_products_are_right) {
  if (!std::filesystem::exists(plugin_path("blas"))) GTEST_SKIP() << "no CBLAS was found";
  expect_right("blas", 35);
}

TEST(ExamplePlugins, the_dropped_tail_is_found_and_shrunk_to_five_tokens) {
  const LawVerdict verdict = verify_law(plugin_named("broken"), find_law("equals_reference"), {});
  ASSERT_TRUE(verdict.failure);
  const Shape& shape = verdict.failure->shrunk.shape;
  EXPECT_LE(shape.kv_tokens, 7) << verdict.failure->token;
  EXPECT_EQ(shape.batch * shape.q_heads, 1) << verdict.failure->token;
  const Replay again = replay(verdict.failure->token, [](const std::string& content) {
    EXPECT_TRUE(content.starts_with("libbroken_plugin.so@")) << content;
    return plugin_named("broken");
  });
  EXPECT_EQ(again.result.outcome, Outcome::broken);
  EXPECT_EQ(again.result.message, verdict.failure->message);
}

}  // namespace
}  // namespace ringlab::verify
