// Wrong edits that nobody planted: a right name or none.
#include "tests/property_tests/mutants/unplanted.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "property_tests/diagnosis/insight.h"

namespace ringlab::mutants {
namespace {

constexpr std::size_t kMostConsistent = 2;

class Unplanted : public ::testing::TestWithParam<NamedEdit> {};

TEST_P(Unplanted, is_rejected_and_called_by_a_right_name_or_by_none) {
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
  EXPECT_LE(ids.size(), kMostConsistent);
  if (ids.size() == 1) {
    EXPECT_THAT(names, ::testing::Contains(ids.front())) << mutant.info.breaks;
  } else if (!ids.empty()) {
    EXPECT_TRUE(std::ranges::any_of(ids, [&](const std::string& id) {
      return std::ranges::count(names, id) > 0;
    })) << fmt::format("{}", ids);
  }
}

INSTANTIATE_TEST_SUITE_P(WrongEdits, Unplanted, ::testing::ValuesIn(unplanted_edits()));

}  // namespace
}  // namespace ringlab::mutants
