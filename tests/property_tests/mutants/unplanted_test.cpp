// Wrong edits that nobody planted: the name that is true of each, or none where none is.
#include "tests/property_tests/mutants/unplanted.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "property_tests/diagnosis/insight.h"
#include "property_tests/diagnosis/telling_case.h"

namespace ringlab::mutants {
namespace {

class Unplanted : public ::testing::TestWithParam<NamedEdit> {};

TEST_P(Unplanted, is_rejected_and_called_by_the_name_that_is_true_of_it_or_by_none) {
  const auto& [mutant, names] = GetParam();
  verify::VerifyOptions options;
  options.cases_per_law = 6;
  const verify::SubjectVerdict verdict = verify::verify_subject(mutant.subject, options);
  EXPECT_FALSE(verdict.passed()) << mutant.info.breaks;
  const verify::Diagnosis diagnosis =
      verify::look_into(mutant.subject, verdict, options, verify::Depth::failures).diagnosis;
  std::vector<std::string> ids;
  for (const verify::Suspect& suspect : diagnosis.explains) ids.push_back(suspect.id);
  RecordProperty("names", fmt::format("{}", fmt::join(ids, " ")));
  EXPECT_THAT(ids, ::testing::IsSubsetOf(names)) << mutant.info.breaks;
  EXPECT_EQ(ids.empty(), names.empty()) << mutant.info.breaks;
}

TEST(UnplantedCase, is_one_that_a_person_works_out_where_the_smallest_has_ranks_without_tokens) {
  for (const NamedEdit& edit : unplanted_edits()) {
    if (edit.mutant.info.id != "unplanted_positions_of_the_own_chunk") continue;
    verify::VerifyOptions options;
    options.cases_per_law = 6;
    options.laws = {"equals_reference"};
    verify::SubjectVerdict verdict = verify::verify_subject(edit.mutant.subject, options);
    const verify::Insight insight =
        verify::look_into(edit.mutant.subject, verdict, options, verify::Depth::failures);
    verify::keep_what_tells(edit.mutant.subject, insight, verdict);
    const verify::Case& shown = verdict.laws.front().failure->shrunk;
    EXPECT_GE(shown.shape.q_tokens, shown.ranks);
    EXPECT_GE(shown.shape.kv_tokens, shown.ranks);
    EXPECT_THAT(shown.ranks, ::testing::AllOf(::testing::Ge(2), ::testing::Le(3)));
    EXPECT_LE(shown.shape.head_dim, 2);
    return;
  }
  FAIL() << "the edit is gone";
}

INSTANTIATE_TEST_SUITE_P(WrongEdits, Unplanted, ::testing::ValuesIn(unplanted_edits()));

}  // namespace
}  // namespace ringlab::mutants
