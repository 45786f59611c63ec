// What a learner is told about each mistake that a lesson asks about.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "property_tests/diagnosis/asked/asked.h"
#include "property_tests/diagnosis/insight.h"
#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {
namespace {

using verify::AskedMistake;

constexpr double kLeastNamed = 0.9;
constexpr std::size_t kMostConsistent = 2;

const verify::Subject& subject_of(const AskedMistake& asked) {
  const auto& all = all_mutants();
  const auto found = std::ranges::find(all, asked.id, [](const Mutant& m) { return m.info.id; });
  if (found == all.end()) throw std::runtime_error("no mutant " + asked.id);
  return found->subject;
}

/// As `ringlab verify` does it, with fewer cases: the laws, and then a look at what failed.
verify::Diagnosis diagnosed(const verify::Subject& subject) {
  verify::VerifyOptions options;
  options.cases_per_law = 6;
  const verify::SubjectVerdict verdict = verify::verify_subject(subject, options);
  return verify::look_into(subject, verdict, options.seed, verify::Depth::failures).diagnosis;
}

TEST(LearnersMistakes, are_named_with_their_cause) {
  std::string table = fmt::format("{:<52} {:<34} {}\n", "planted", "name", "said");
  std::size_t named = 0;
  for (const AskedMistake& asked : verify::asked_mistakes()) {
    const verify::Diagnosis diagnosis = diagnosed(subject_of(asked));
    std::vector<std::string> ids;
    for (const verify::Suspect& suspect : diagnosis.explains) ids.push_back(suspect.id);
    table += fmt::format(
        "{:<52} {:<34} {}\n", asked.id, asked.name,
        ids == std::vector{asked.name} ? "that" : fmt::format("{}", fmt::join(ids, " ")));
    for (const std::string& f : diagnosis.findings) table += "      " + f + "\n";
    named += ids == std::vector{asked.name};
    EXPECT_LE(ids.size(), kMostConsistent) << asked.id;
    EXPECT_TRUE(ids.empty() || std::ranges::find(ids, asked.name) != ids.end())
        << asked.id << " is called " << ids.front();
  }
  std::printf("%s", table.c_str());
  const double all = static_cast<double>(verify::asked_mistakes().size());
  EXPECT_GE(static_cast<double>(named), kLeastNamed * all) << table;
}

}  // namespace
}  // namespace ringlab::mutants
