// Score modifiers behind the C interface: what is claimed is asked for, and what is older works on.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>

#include "property_tests/plugins/plugin_modifiers.h"
#include "property_tests/verify.h"
#include "reference/attention/modified.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/plugins/plugin_folder.h"

// The header as it was before there were modifiers, beside the one of today.
namespace first_header {
#undef RINGLAB_PLUGIN_H_
#undef RINGLAB_PLUGIN_EXPORT
#define ringlab_plugin_v1 first_ringlab_plugin_v1
#include "tests/property_tests/plugins/first_header/ringlab_plugin.h"
#undef ringlab_plugin_v1
}  // namespace first_header

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

constexpr std::array<const char*, 4> kClasses = {"soft-capping", "ALiBi", "sinks", "dropout"};
constexpr std::uint32_t kAllKinds = RINGLAB_MODIFIER_SOFTCAP | RINGLAB_MODIFIER_ALIBI |
                                    RINGLAB_MODIFIER_SINKS | RINGLAB_MODIFIER_DROPOUT;

Subject claiming(std::uint32_t kinds) {
  setenv("RINGLAB_TEST_MODIFIERS", std::to_string(kinds).c_str(), 1);
  return plugin_named("modified");
}

/// Those of the four that cases of a verdict had.
std::set<std::string> modifiers_in(const LawVerdict& verdict) {
  std::set<std::string> tried;
  for (const char* name : kClasses) {
    if (verdict.classes.count(name) != 0) tried.insert(name);
  }
  return tried;
}

TEST(PluginModifiers, of_every_kind_are_computed_by_a_correct_plugin) {
  expect_laws_kept(claiming(kAllKinds), {.cases_per_law = 12}, 40);
}

TEST(PluginModifiers, are_asked_for_kind_by_kind_as_claimed) {
  for (std::uint32_t kinds = 0; kinds <= kAllKinds; ++kinds) {
    const LawVerdict verdict =
        verify_law(claiming(kinds), find_law("equals_reference"), {.cases_per_law = 80});
    EXPECT_FALSE(verdict.failure) << kinds << ": " << verdict.failure->message;
    std::set<std::string> wanted;
    for (std::size_t kind = 0; kind < kClasses.size(); ++kind) {
      if ((kinds >> kind & 1) != 0) wanted.insert(kClasses[kind]);
    }
    EXPECT_EQ(modifiers_in(verdict), wanted) << kinds;
  }
}

TEST(PluginModifiers, a_run_with_one_that_is_not_claimed_is_unsupported) {
  const Subject subject = claiming(kAllKinds & ~std::uint32_t{RINGLAB_MODIFIER_SINKS});
  const Case c{.shape = {1, 1, 1, 4, 4, 2, 2}, .modifiers = {.sinks = true}};
  const LawResult result = run_law(subject, find_law("equals_reference"), c);
  EXPECT_EQ(result.outcome, Outcome::discarded);
  EXPECT_THAT(result.message, HasSubstr("knows no sinks"));
}

TEST(PluginModifiers, the_flash_loop_knows_soft_capping_and_alibi) {
  const LawVerdict verdict =
      verify_law(plugin_named("flash1"), find_law("equals_reference"), {.cases_per_law = 80});
  EXPECT_FALSE(verdict.failure) << verdict.failure->message;
  EXPECT_EQ(modifiers_in(verdict), (std::set<std::string>{"soft-capping", "ALiBi"}));
}

TEST(PluginModifiers, kept_pairs_lie_batch_by_batch_and_are_those_of_the_generator) {
  const Modifiers modifiers{.dropout = 0.5, .dropout_seed = 7};
  const Shape shape{2, 3, 1, 4, 5, 1, 1};
  const std::vector<std::uint8_t> kept = plugins::kept_pairs(modifiers, shape);
  ASSERT_EQ(kept.size(), 2u * 3 * 4 * 5);
  std::size_t next = 0, ones = 0;
  for_each_index({2, 3, 4, 5}, [&](auto b, auto h, auto i, auto j) {
    const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    const PhiloxWords words = random_words({{word(j / 4), word(i), word(h), word(b)}}, 7);
    EXPECT_EQ(kept[next] != 0, words.word[j % 4] >= dropout_threshold(0.5)) << next;
    ones += kept[next++];
  });
  EXPECT_GT(ones, 0u);
  EXPECT_LT(ones, kept.size());
}

TEST(PluginHeader, only_grew_at_the_end_of_a_call) {
  EXPECT_EQ(sizeof(first_header::ringlab_plugin), sizeof(ringlab_plugin));
  EXPECT_EQ(sizeof(first_header::ringlab_abilities), sizeof(ringlab_abilities));
  EXPECT_EQ(offsetof(first_header::ringlab_abilities, reserved),
            offsetof(ringlab_abilities, modifiers));
  EXPECT_EQ(offsetof(first_header::ringlab_plugin, numerics), offsetof(ringlab_plugin, numerics));
  EXPECT_EQ(offsetof(first_header::ringlab_plugin, run), offsetof(ringlab_plugin, run));
  EXPECT_EQ(offsetof(first_header::ringlab_call, mask), offsetof(ringlab_call, mask));
  EXPECT_EQ(offsetof(first_header::ringlab_call, message_size),
            offsetof(ringlab_call, message_size));
  EXPECT_EQ(sizeof(first_header::ringlab_call), offsetof(ringlab_call, modifiers));
}

TEST(PluginHeader, plugins_of_the_first_are_as_right_as_ever_and_asked_for_no_modifiers) {
  const Subject subject = plugin_named("first_header");
  EXPECT_EQ(subject.can.modifiers, ModifierAbilities{});
  const SubjectVerdict old = verify_subject(subject, {.cases_per_law = 6});
  const SubjectVerdict today = verify_subject(plugin_named("template"), {.cases_per_law = 6});
  EXPECT_TRUE(old.passed());
  EXPECT_EQ(old.laws_passed(), today.laws_passed());
  for (const LawVerdict& law : old.laws) EXPECT_EQ(modifiers_in(law).size(), 0u) << law.id;
}

/// Two queries and two keys in one channel, as callers of the first header make it: what lies
/// behind its end is not theirs to set.
struct SmallCall {
  float q[2] = {1, 2}, k[2] = {1, -1}, v[2] = {1, 3}, o[2] = {}, lse[2] = {};
  std::int64_t positions[2] = {0, 1}, begin[2] = {0, 0}, end[2] = {2, 2};
  ringlab_call call = {};

  SmallCall() {
    const auto set = [](ringlab_tensor& tensor, float* data) {
      tensor = {data, RINGLAB_F32, 0, {1, 1, 2, 1}, {2, 2, 1, 1}};
    };
    set(call.q, q);
    set(call.k, k);
    set(call.v, v);
    set(call.o, o);
    set(call.lse, lse);
    call.version = RINGLAB_PLUGIN_VERSION;
    call.scale = 1;
    call.mask.positions = positions;
    call.mask.visible_begin = begin;
    call.mask.visible_end = end;
    call.modifiers.softcap = 0.5;
  }
};

TEST(PluginHeader, what_is_behind_the_end_of_an_older_call_is_not_read) {
  void* library = dlopen(plugin_path("flash1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  const ringlab_plugin* (*entry)() = nullptr;
  void* symbol = dlsym(library, "ringlab_plugin_v1");
  std::memcpy(&entry, &symbol, sizeof(entry));
  const auto second_lse = [&](std::size_t call_size) {
    SmallCall small;
    small.call.struct_size = static_cast<std::uint32_t>(call_size);
    EXPECT_EQ(entry()->run(&small.call, nullptr), RINGLAB_OK);
    return small.lse[1];
  };
  EXPECT_GT(second_lse(sizeof(first_header::ringlab_call)), 2);  // the larger score is 2
  EXPECT_LT(second_lse(sizeof(ringlab_call)), 1.5);              // capped at 0.5, and log 2
  dlclose(library);
}

}  // namespace
}  // namespace ringlab::verify
