// Wrong edits that nobody planted: the name that is true of each, or none where none is.
#include "tests/property_tests/mutants/unplanted.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "property_tests/diagnosis/insight.h"

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

INSTANTIATE_TEST_SUITE_P(WrongEdits, Unplanted, ::testing::ValuesIn(unplanted_edits()));

}  // namespace
}  // namespace ringlab::mutants
