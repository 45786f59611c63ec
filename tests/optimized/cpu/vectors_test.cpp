#include "optimized/cpu/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/core/error.h"

namespace ringlab::cpu {
namespace {

TEST(Vectors, the_widest_are_in_use_unless_others_are_chosen) {
  const std::vector<std::string> all = available_vectors();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(vectors_in_use(), all.front());
  for (const std::string& name : all) {
    use_vectors(name);
    EXPECT_EQ(vectors_in_use(), name);
  }
  use_vectors(all.front());
}

TEST(Vectors, any_processor_can_do_with_the_last) {
#if defined(__x86_64__)
  EXPECT_EQ(available_vectors().back(), "scalar");
#endif
}

TEST(Vectors, a_kind_that_is_not_there_is_refused_and_changes_nothing) {
  const std::string before = vectors_in_use();
  EXPECT_THROW(use_vectors("mmx"), Error);
  EXPECT_EQ(vectors_in_use(), before);
}

}  // namespace
}  // namespace ringlab::cpu
