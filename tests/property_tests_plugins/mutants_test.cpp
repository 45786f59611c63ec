// Planted mistakes behind the C interface are found as they are in this process.
#include "property_tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "property_tests/verify.h"
#include "tests/property_tests_plugins/plugin_folder.h"

namespace ringlab::verify {
namespace {

SubjectVerdict verdict_of(const std::string& name, const VerifyOptions& options) {
  setenv("RINGLAB_MUTANT", name.c_str(), 1);
  return verify_subject(plugin_named("mutant"), options);
}

TEST(MutantPlugins, correct_stages_break_no_law) {
  for (const char* stage : {"ring", "backward"}) {
    const SubjectVerdict verdict = verdict_of(stage, {.cases_per_law = 4});
    for (const LawVerdict& law : verdict.laws) {
      EXPECT_FALSE(law.failure) << stage << " " << law.id << ": " << law.failure->message;
    }
    EXPECT_GE(verdict.laws_passed(), 50) << stage;
  }
}

/// One mistake of each stage. What depends on schedules, wires or traffic is not part of a call.
TEST(MutantPlugins, a_mistake_of_each_stage_is_found) {
  const std::set<std::string> stages = {"broadcast",       "online_softmax", "flash_blocks",
                                        "merge",           "ring",           "causal_ring",
                                        "overlapped_ring", "balanced_ring",  "backward"};
  std::set<std::string> tried;
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    if (stages.count(mutant.info.stage) == 0 || !tried.insert(mutant.info.stage).second) continue;
    const VerifyOptions options{
        .cases_per_law = 60,
        .laws = {"equals_reference", "P58", "P60", "gradients_equal_reference"},
        .shrink = false};
    EXPECT_FALSE(verdict_of(mutant.info.id, options).passed()) << mutant.info.id;
  }
  EXPECT_EQ(tried, stages);
}

/// The first law that a mistake breaks, and the case that is left when it is shrunk.
std::optional<LawVerdict> first_broken(const std::string& mutant) {
  setenv("RINGLAB_MUTANT", mutant.c_str(), 1);
  const Subject subject = plugin_named("mutant");
  for (const Law& law : all_laws()) {
    LawVerdict verdict = verify_law(subject, law, {.cases_per_law = 20});
    if (verdict.failure) return verdict;
  }
  return std::nullopt;
}

/// Takes minutes. The rest depends on what a call does not have: schedules, slots, wires, traffic,
/// modifiers.
TEST(MutantPlugins, most_mistakes_show_through_the_interface) {
  if (std::getenv("RINGLAB_ALL_MUTANTS") == nullptr) GTEST_SKIP() << "set RINGLAB_ALL_MUTANTS=1";
  int found = 0, all = 0;
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    const std::optional<LawVerdict> verdict = first_broken(mutant.info.id);
    ++all;
    found += verdict.has_value();
    std::printf("%s %s\n", mutant.info.id.c_str(),
                verdict ? verdict->failure->token.c_str() : "not found");
    std::fflush(stdout);
  }
  EXPECT_GT(found, all / 2);
}

}  // namespace
}  // namespace ringlab::verify
