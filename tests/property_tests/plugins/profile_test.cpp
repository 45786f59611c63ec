// What a plugin promises of its arithmetic, problem by problem.
#include <gtest/gtest.h>

#include "property_tests/plugins/plugin_profile.h"

namespace ringlab::plugins {
namespace {

Problem problem(std::int64_t queries, std::int64_t keys, std::int64_t heads_that_share) {
  return {.shape = {.q_heads = 2 * heads_that_share,
                    .kv_heads = 2,
                    .q_tokens = queries,
                    .kv_tokens = keys},
          .dtype = DType::bf16,
          .mask = Mask().bind(queries, keys)};
}

TEST(PluginProfile, gradients_are_stored_once_unless_it_says_otherwise) {
  const NumericsProfile profile = plugin_profile({}, problem(1000, 1000, 4), "a plugin");
  EXPECT_EQ(profile.key_gradient_stores, 0);
  EXPECT_EQ(profile.query_gradient_stores, 0);
}

TEST(PluginProfile, counts_the_stores_before_the_last_of_each_sum) {
  ringlab_numerics promise = {};
  promise.queries_per_store = 32;
  promise.keys_per_store = 512;
  const NumericsProfile profile = plugin_profile(promise, problem(70, 513, 3), "a plugin");
  EXPECT_EQ(profile.key_gradient_stores, 3 * 3 - 1);  // three heads, three blocks of queries each
  EXPECT_EQ(profile.query_gradient_stores, 1);
}

TEST(PluginProfile, each_kernel_bounds_gradients_as_it_promises) {
  const GradientTerms terms{.terms = 70, .magnitude = 1, .value = 0.5};
  const NumericsProfile careful = plugin_profile({}, problem(70, 70, 1), "a plugin");
  ringlab_numerics promise = {};
  promise.queries_per_store = 32;
  const NumericsProfile storing = plugin_profile(promise, problem(70, 70, 1), "a plugin");
  GradientTerms stored = terms;
  stored.stores = storing.key_gradient_stores;
  EXPECT_GT(gradient_bound(storing, stored), gradient_bound(careful, terms));
}

}  // namespace
}  // namespace ringlab::plugins
