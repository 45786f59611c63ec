// What a learner is told about each mistake that a lesson asks about.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cli/report/wrong_answer.h"
#include "property_tests/diagnosis/asked/asked.h"
#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {
namespace {

using verify::AskedMistake;

constexpr double kLeastNamed = 0.9;
constexpr std::size_t kMostConsistent = 2;
constexpr std::size_t kWidth = 100;
constexpr int kMostLookedInto = 3;  // broken laws, by verify::look_into()

const verify::Subject& subject_of(const AskedMistake& asked) {
  const auto& all = all_mutants();
  const auto found = std::ranges::find(all, asked.id, [](const Mutant& m) { return m.info.id; });
  if (found == all.end()) throw std::runtime_error("no mutant " + asked.id);
  return found->subject;
}

/// As `ringlab verify` does it, with fewer cases: the laws until as many broke as are looked into, and
/// then a look at these.
report::SubjectResult verified(const verify::Subject& subject) {
  verify::VerifyOptions options;
  options.cases_per_law = 6;
  report::SubjectResult result;
  result.subject = subject;
  result.input_skipped = "the laws are enough";
  int broken = 0;
  for (const verify::Law* law : verify::laws_for(subject, options)) {
    result.laws.laws.push_back(verify::verify_law(subject, *law, options));
    if (result.laws.laws.back().failure && ++broken == kMostLookedInto) break;
  }
  result.insight = verify::look_into(subject, result.laws, options, verify::Depth::failures);
  return result;
}

std::vector<std::string> ids_of(const verify::Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const verify::Suspect& suspect : diagnosis.explains) ids.push_back(suspect.id);
  return ids;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The answer is short, its name comes first, and the question of the lesson is asked.
void check_answer(const AskedMistake& asked, const report::SubjectResult& result) {
  const auto answer = report::wrong_answer(result, DeviceKind::cpu);
  ASSERT_TRUE(answer);
  const std::string text = report::wrong_answer_text(*answer);
  SCOPED_TRACE(text);
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_LE(lines.size(), report::kMostAnswerLines);
  EXPECT_TRUE(lines[1].starts_with("mutant:" + asked.id + " is WRONG: "));
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("  replay") || line.size() <= kWidth) << line;
  }
  EXPECT_EQ(text.find("got nan"), std::string::npos) << "NaN has words";
  const bool is_named = ids_of(result.insight.diagnosis) == std::vector{asked.name};
  EXPECT_EQ(is_named, !answer->question.empty());
}

/// All of them with RINGLAB_ALL_MUTANTS=1, as scripts/try_labs tries all; otherwise every third.
std::vector<AskedMistake> mistakes_to_try() {
  const auto& all = verify::asked_mistakes();
  const std::size_t step = std::getenv("RINGLAB_ALL_MUTANTS") != nullptr ? 1 : 3;
  std::vector<AskedMistake> tried;
  for (std::size_t at = 0; at < all.size(); at += step) tried.push_back(all[at]);
  return tried;
}

TEST(LearnersMistakes, are_named_with_their_cause_in_a_few_lines) {
  const std::vector<AskedMistake> tried = mistakes_to_try();
  std::string table = fmt::format("{:<52} {:<34} {}\n", "planted", "name", "said");
  std::size_t named = 0;
  for (const AskedMistake& asked : tried) {
    SCOPED_TRACE(asked.id);
    const report::SubjectResult result = verified(subject_of(asked));
    const std::vector<std::string> ids = ids_of(result.insight.diagnosis);
    const bool is_named = ids == std::vector{asked.name};
    named += is_named;
    table += fmt::format("{:<52} {:<34} {}\n", asked.id, asked.name,
                         is_named ? "that" : fmt::format("{}", fmt::join(ids, " ")));
    EXPECT_LE(ids.size(), kMostConsistent);
    EXPECT_TRUE(ids.empty() || std::ranges::find(ids, asked.name) != ids.end())
        << "it is called " << ids.front();
    check_answer(asked, result);
  }
  std::printf("%s", table.c_str());
  const double all = static_cast<double>(tried.size());
  EXPECT_GE(static_cast<double>(named), kLeastNamed * all);
}

}  // namespace
}  // namespace ringlab::mutants
