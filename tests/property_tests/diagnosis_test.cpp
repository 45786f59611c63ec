#include "property_tests/diagnosis/diagnosis.h"

#include <gmock/gmock.h>

#include <cmath>

#include "property_tests/diagnosis/asked/asked.h"
#include "property_tests/diagnosis/evidence.h"
#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/generators/cases.h"
#include "property_tests/subject_list.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Case small_case() {
  Case c;
  c.shape = {1, 1, 1, 6, 6, 3, 2};
  return c;
}

std::vector<std::string> names_of(const Subject& subject) {
  std::vector<std::string> ids;
  for (const Suspect& suspect :
       diagnose(subject, find_law("equals_reference"), small_case()).explains) {
    ids.push_back(suspect.id);
  }
  return ids;
}

TEST(Diagnosis, a_model_without_mistake_is_what_the_oracle_says) {
  Draws draws(5);
  for (int n = 0; n < 200; ++n) {
    const Case c = random_case(draws);
    const Trial trial = make_trial(c);
    const NumericsProfile profile = naive_subject().profile(trial.problem, trial.options);
    const Prediction predicted = finish(make_model(trial, profile));
    const ExactForward exact = exact_forward(trial.input());
    EXPECT_TRUE(agrees(predicted, {exact.out, exact.lse}, LseCompared::yes)) << describe(c);
    const ForwardTolerance allowed = forward_tolerance(trial.input(), exact, profile);
    for (std::size_t i = 0; i < allowed.lse.values().size(); ++i) {
      const double bound = allowed.lse.values()[i], own = predicted.allowed.lse.values()[i];
      if (std::isinf(bound)) continue;
      // In f64 the reference's own error, which is not a model's, is a good part of the bound.
      if (c.dtype != DType::f64) {
        EXPECT_GE(own, 0.8 * bound) << describe(c);
      }
      EXPECT_LE(own, 2.5 * bound + 1e-13) << describe(c);
    }
  }
}

TEST(Hypotheses, predict_something_where_there_are_no_queries_no_keys_or_few_of_either) {
  const Subject subject = naive_subject();
  for (const auto& [queries, keys] : {std::pair{0, 3}, {3, 0}, {0, 0}, {1, 2}, {2, 1}}) {
    for (const char* mask : {"full", "causal", "window:1,0"}) {
      Case c = small_case();
      c.shape.q_tokens = queries;
      c.shape.kv_tokens = keys;
      c.ranks = 4;
      c.mask = mask;
      const Trial trial = make_trial(fitted(std::move(c)));
      const Scene scene{.trial = trial, .profile = subject.profile(trial.problem, trial.options)};
      for (const Hypothesis& hypothesis : forward_hypotheses()) {
        const Prediction predicted = hypothesis.predict(scene);
        EXPECT_EQ(predicted.output.out.extents(), trial.shape().out()) << hypothesis.suspect.id;
      }
    }
  }
}

TEST(Diagnosis, correct_subjects_have_no_mistake) {
  for (const Subject& subject : all_subjects()) {
    EXPECT_THAT(names_of(subject), IsEmpty()) << subject.name;
  }
}

struct Named {
  Mistake mistake;
  const char* id;
};
void PrintTo(const Named& named, std::ostream* out) { *out << named.id; }

class NamedMistake : public ::testing::TestWithParam<Named> {};

TEST_P(NamedMistake, has_one_name_and_it_is_right) {
  EXPECT_THAT(names_of(naive_subject(GetParam().mistake)), ElementsAre(GetParam().id));
}

INSTANTIATE_TEST_SUITE_P(
    Diagnosis, NamedMistake,
    ::testing::Values(Named{Mistake::acc_not_rescaled, "softmax.acc_not_rescaled"},
                      Named{Mistake::sum_not_rescaled, "softmax.sum_not_rescaled"},
                      Named{Mistake::scale_forgotten, "scale.missing"},
                      Named{Mistake::scale_sign_flipped, "scale.negated"},
                      Named{Mistake::lse_in_base_two, "lse.sum_in_base_two"},
                      Named{Mistake::lse_without_maximum, "lse.without_maximum"},
                      Named{Mistake::lse_in_f16, "lse.stored_in_f16"},
                      Named{Mistake::last_key_dropped, "mask.last_key_dropped"},
                      Named{Mistake::kv_head_modulo, "heads.modulo"},
                      Named{Mistake::maximum_starts_at_zero_guarded,
                            "softmax.maximum_starts_at_zero"},
                      Named{Mistake::masked_value_read, "mask.masked_value_read"},
                      Named{Mistake::masked_key_read, "mask.masked_key_read"},
                      Named{Mistake::last_channel_ignored, "channels.last_dropped"}));

class UnnamedMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(UnnamedMistake, gets_no_name_rather_than_a_wrong_one) {
  EXPECT_THAT(names_of(naive_subject(GetParam())), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Diagnosis, UnnamedMistake,
                         ::testing::Values(Mistake::first_v_channel_twice,
                                           Mistake::odd_channels_weakened,
                                           Mistake::negative_weights, Mistake::neighbour_leaks,
                                           Mistake::row_maximum_carried,
                                           Mistake::odd_keys_favoured));

TEST(Diagnosis, other_low_bits_beside_nan_are_no_masked_value_where_it_is_said) {
  Subject subject = naive_subject();
  subject.can.dtypes = {DType::f32};
  subject.can.drop({Ability::same_bits_beside_nan});
  subject = with_results(subject, [](RunResult& result, const auto& input, const auto&) {
    bool has_nan = false;
    for_each_index(input.v.extents,
                   [&](auto... at) { has_nan = has_nan || std::isnan(input.v(at...)); });
    if (has_nan) result.output.out = scaled(result.output.out, 1 + 0x1p-26);
  });
  EXPECT_THAT(names_of(subject), IsEmpty());
}

TEST(Diagnosis, a_subject_that_always_throws_gets_no_name) {
  Subject subject = naive_subject();
  subject.run = [](const AttentionInput&, const RunOptions&) -> RunResult {
    throw std::runtime_error("no");
  };
  EXPECT_THAT(names_of(subject), IsEmpty());
}

TEST(Diagnosis, no_stage_is_asked_about_what_only_later_ones_have) {
  EXPECT_EQ(question_about("ring.messages", "ring"), "");
  EXPECT_NE(question_about("ring.messages", "hierarchical"), "");
  EXPECT_NE(question_about("ring.messages", "heads"),
            question_about("ring.messages", "hierarchical"));
  EXPECT_NE(question_about("ring.messages", "optimized"), "");
}

TEST(Diagnosis, no_stage_is_asked_what_stages_before_it_do_not_agree_on) {
  EXPECT_EQ(question_about("ring.messages", "documents_and_windows"), "");
  EXPECT_NE(question_about("ring.own_chunk_twice", "causal_ring"), "");
}

TEST(Diagnosis, sentences_say_how_sure_it_is) {
  Diagnosis diagnosis;
  EXPECT_EQ(diagnosis.sentence(), "");
  diagnosis.explains = {{"a", "one thing"}};
  EXPECT_EQ(diagnosis.sentence(), "this is: one thing");
  diagnosis.explains.push_back({"b", "another"});
  EXPECT_EQ(diagnosis.sentence(), "consistent with: one thing; or another");
}

}  // namespace
}  // namespace ringlab::verify
