// Every law here can fail: each catches a mistake that it was made for.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "property_tests/laws/groups.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

struct Catch {
  const char* law;
  Mistake mistake;
};

void PrintTo(const Catch& entry, std::ostream* out) {
  *out << entry.law << "_mistake_" << static_cast<int>(entry.mistake);
}

const std::vector<Catch> kCatches = {
    {"equals_reference", Mistake::causal_one_off},
    {"equals_reference", Mistake::kv_head_modulo},
    {"equals_reference", Mistake::maximum_starts_at_zero},
    {"equals_reference", Mistake::scale_forgotten},
    {"equals_reference", Mistake::sum_in_bf16},
    {"U", Mistake::last_key_dropped},
    {"U", Mistake::negative_weights},
    {"Y", Mistake::sum_not_rescaled},
    {"Y", Mistake::acc_not_rescaled},
    {"Y", Mistake::odd_channels_weakened},
    {"S", Mistake::acc_not_rescaled},
    {"S", Mistake::floor_under_weights},
    {"R", Mistake::kv_head_modulo},
    {"R", Mistake::causal_one_off},
    {"P1", Mistake::acc_not_rescaled},
    {"P1", Mistake::sum_in_bf16},
    {"P2", Mistake::acc_not_rescaled},
    {"P3", Mistake::values_in_f16},
    {"P4", Mistake::values_in_f16},
    {"P5", Mistake::queries_in_f16},
    {"P6", Mistake::odd_channels_weakened},
    {"P7", Mistake::first_v_channel_twice},
    {"P7", Mistake::last_channel_ignored},
    {"P8", Mistake::negative_weights},
    {"P9", Mistake::sum_not_rescaled},
    {"P10", Mistake::scale_forgotten},
    {"P14", Mistake::maximum_starts_at_zero},
    {"P14", Mistake::lse_in_f16},
    {"P14", Mistake::lse_without_maximum},
    {"P15", Mistake::odd_channels_weakened},
    {"P16", Mistake::odd_keys_favoured},
    {"P16", Mistake::acc_not_rescaled},
    {"P17", Mistake::row_maximum_carried},
    {"P18", Mistake::neighbour_leaks},
    {"P19", Mistake::order_by_batch},
    {"P20", Mistake::kv_head_modulo},
    {"P21", Mistake::lse_in_base_two},
    {"P21", Mistake::sum_not_rescaled},
    {"P22", Mistake::first_key_twice},
    {"P22", Mistake::lse_in_base_two},
    {"P23", Mistake::floor_under_weights},
    {"P24", Mistake::last_key_dropped},
    {"P25", Mistake::scale_sign_flipped},
    {"P26", Mistake::lse_in_base_two},
    {"P26", Mistake::first_key_twice},
    {"P27", Mistake::lse_in_base_two},
    {"P28", Mistake::acc_not_rescaled},
    {"P28", Mistake::floor_under_weights},
    {"equals_reference", Mistake::scale_made_positive},
    {"equals_reference", Mistake::zero_scale_taken_for_none},
    {"equals_reference", Mistake::channels_cut_at_128},
    {"equals_reference", Mistake::heads_counted_to_8},
    {"equals_reference", Mistake::third_mask_ignored},
    {"equals_reference", Mistake::batches_counted_to_4},
};

std::string name_of(const ::testing::TestParamInfo<Catch>& info) {
  return ::testing::PrintToString(info.param);
}

class LawCatches : public ::testing::TestWithParam<Catch> {};

TEST_P(LawCatches, a_mistake_and_shrinks_it) {
  const Subject subject = naive_subject(GetParam().mistake);
  const LawVerdict verdict = verify_law(subject, find_law(GetParam().law), {.cases_per_law = 200});
  ASSERT_TRUE(verdict.failure) << "the mistake survived " << verdict.cases << " cases";
  const Shape& shape = verdict.failure->shrunk.shape;
  EXPECT_LE(shape.q_tokens * shape.kv_tokens, 128) << verdict.failure->token;
}

INSTANTIATE_TEST_SUITE_P(Law, LawCatches, ::testing::ValuesIn(kCatches), name_of);

TEST(Laws, of_the_value_score_key_and_row_groups_all_catch_something) {
  std::set<std::string> catching;
  for (const Catch& entry : kCatches) catching.insert(entry.law);
  for (auto group : {reference_laws, probe_laws, value_laws, score_laws, weight_laws, key_laws,
                     added_key_laws, row_laws}) {
    for (const Law& law : group()) EXPECT_TRUE(catching.count(law.id)) << law.id;
  }
}

TEST(Laws, say_which_ability_a_subject_lacks) {
  EXPECT_EQ(ability_word(Ability::backward), "backward");
  EXPECT_EQ(ability_word(Ability::few_shapes), "few_shapes");
  for (const Law& law : all_laws()) {
    for (const Ability needed : law.needs) {
      Subject lacking = naive_subject();
      lacking.can.drop({needed});
      EXPECT_NE(law.unmet(lacking), "") << law.id << ": " << ability_word(needed);
    }
  }
}

TEST(Laws, have_different_ids_and_names) {
  std::set<std::string> seen;
  for (const Law& law : all_laws()) {
    EXPECT_TRUE(seen.insert(law.id).second) << law.id;
    EXPECT_TRUE(seen.insert(law.name).second) << law.name;
    EXPECT_FALSE(law.statement.empty()) << law.id;
    EXPECT_EQ(law.id.find('/'), std::string::npos) << law.id;
  }
}

}  // namespace
}  // namespace ringlab::verify
