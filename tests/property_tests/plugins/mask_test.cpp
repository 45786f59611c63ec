// Masks in the forms that plugins read say what our mask says.
#include <gtest/gtest.h>

#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/plugins/plugin_mask.h"

namespace ringlab::plugins {
namespace {

/// The rules of ringlab_plugin.h, read by themselves.
bool visible_by_kinds(const PluginMask& forms, std::int64_t i, std::int64_t j) {
  const ringlab_mask& mask = forms.mask;
  const std::int64_t p = forms.positions[static_cast<std::size_t>(i)];
  const auto has = [&](std::uint32_t kind) { return (mask.kinds & kind) != 0; };
  if (has(RINGLAB_MASK_CAUSAL) && j > p) return false;
  if (has(RINGLAB_MASK_PREFIX) && j >= mask.prefix_tokens && j > p) return false;
  if (has(RINGLAB_MASK_WINDOW)) {
    if (mask.window_left != INT64_MAX && j < p - mask.window_left) return false;
    if (mask.window_right != INT64_MAX && j > p + mask.window_right) return false;
  }
  if (!has(RINGLAB_MASK_DOCUMENTS)) return true;
  for (std::size_t d = 0; d + 1 < forms.starts.size(); ++d) {
    const auto inside = [&](std::int64_t x) {
      return x >= forms.starts[d] && x < forms.starts[d + 1];
    };
    if (inside(p) && inside(j)) return true;
  }
  return false;
}

bool visible_by_intervals(const PluginMask& forms, std::int64_t i, std::int64_t j) {
  const auto row = static_cast<std::size_t>(i);
  return j >= forms.visible_begin[row] && j < forms.visible_end[row];
}

TEST(PluginMask, says_the_same_in_all_its_forms) {
  verify::Draws draws(5);
  int with_bits = 0, masked = 0;
  for (int n = 0; n < 2000; ++n) {
    const verify::Case c = verify::random_case(draws);
    const Problem problem = verify::make_problem(c);
    const PluginMask forms = plugin_mask(problem.mask, RINGLAB_MASK_BYTES);
    const bool bits = (forms.mask.kinds & RINGLAB_MASK_BYTES) != 0;
    ASSERT_EQ(bits, problem.mask.has_bits()) << c.mask.text();
    with_bits += bits;
    masked += forms.mask.kinds != 0;
    for (std::int64_t i = 0; i < c.shape.q_tokens; ++i) {
      for (std::int64_t j = 0; j < c.shape.kv_tokens; ++j) {
        const bool allowed = problem.mask.allows(i, j);
        const auto at = static_cast<std::size_t>(i * c.shape.kv_tokens + j);
        const bool in_bytes = forms.mask.kinds == 0 || forms.bytes[at] != 0;
        ASSERT_EQ(in_bytes, allowed) << c.mask.text();
        if (bits) {
          ASSERT_TRUE(!allowed || visible_by_intervals(forms, i, j)) << c.mask.text();
          continue;
        }
        ASSERT_EQ(visible_by_kinds(forms, i, j), allowed) << c.mask.text() << " " << i << " " << j;
        ASSERT_EQ(visible_by_intervals(forms, i, j), allowed)
            << c.mask.text() << " " << i << " " << j;
      }
    }
  }
  EXPECT_GT(with_bits, 50);
  EXPECT_GT(masked, 1000);
}

TEST(PluginMask, has_no_empty_documents) {
  const PluginMask forms = plugin_mask(Mask({DocumentsMask{{0, 2, 0, 1, 0}}}).bind(3, 3), 0);
  EXPECT_EQ(forms.starts, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(forms.mask.documents, 2);
}

TEST(PluginMask, gives_bytes_to_those_only_who_take_them) {
  const Mask causal = Mask({CausalMask{}}).bind(3, 3);
  EXPECT_TRUE(plugin_mask(causal, RINGLAB_MASK_INTERVALS).bytes.empty());
  EXPECT_EQ(plugin_mask(causal, RINGLAB_MASK_BYTES).bytes.size(), 9u);
}

}  // namespace
}  // namespace ringlab::plugins
