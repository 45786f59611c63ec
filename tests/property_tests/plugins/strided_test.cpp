// Plugins that are wrong about the memory order of their inputs, and one that is right.
#include <gmock/gmock.h>

#include <cstdlib>

#include "property_tests/verify.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/plugins/plugin_folder.h"

namespace ringlab::verify {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

Subject strided_with(const std::string& mistake) {
  setenv("RINGLAB_TEST_MISTAKE", mistake.c_str(), 1);
  return plugin_named("strided");
}

TEST(StridedPlugin, is_right_without_a_mistake) {
  expect_laws_kept(strided_with("none"), {.cases_per_law = 10}, 40);
  for (const char* law : {"P38", "P38-gradients", "far_strides"}) {
    EXPECT_EQ(finding(strided_with("none"), law), "held") << law;
  }
}

TEST(StridedPlugin, that_takes_one_input_of_its_gradients_for_dense_is_found) {
  for (const char* input : {"dout_dense", "k_dense_backwards", "v_dense_backwards"}) {
    EXPECT_THAT(finding(strided_with(input), "P38-gradients"), HasSubstr("in another memory order"))
        << input;
    EXPECT_EQ(finding(strided_with(input), "P38"), "held") << input;
    EXPECT_EQ(finding(strided_with(input), "gradients_equal_reference"), "held") << input;
  }
}

TEST(StridedPlugin, whose_offsets_have_32_bits_is_found_where_strides_are_longer) {
  EXPECT_THAT(finding(strided_with("int_offsets"), "far_strides"),
              AnyOf(HasSubstr("it crashed with SIGSEGV: it read before the start of "),
                    HasSubstr("it crashed with SIGSEGV: it read between the elements of "),
                    HasSubstr("with elements 2^31 from one another")));
  EXPECT_EQ(finding(strided_with("int_offsets"), "P38"), "held");
  EXPECT_EQ(finding(strided_with("int_offsets"), "P38-gradients"), "held");
}

TEST(StridedPlugin, that_keeps_dout_by_its_address_is_found_when_its_middle_changes) {
  EXPECT_THAT(finding(strided_with("keeps_dout"), "same_addresses_middle"), HasSubstr("exact"));
  for (const char* law : {"same_call", "same_addresses", "gradients_equal_reference"}) {
    EXPECT_EQ(finding(strided_with("keeps_dout"), law), "held") << law;
  }
}

TEST(StridedPlugin, far_elements_need_no_memory_and_few_addresses) {
  setenv("RINGLAB_TEST_MISTAKE", "none", 1);
  const Subject small = plugin_named("strided", {.memory_bytes = std::int64_t{512} << 20});
  EXPECT_EQ(finding(small, "far_strides"), "held");
}

}  // namespace
}  // namespace ringlab::verify
