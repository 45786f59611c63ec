// Planted mistakes get their names, and never another one's.
#include <gmock/gmock.h>

#include <set>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/events/event_mistakes.h"
#include "property_tests/mutants/legal_variants.h"
#include "property_tests/mutants/mutants.h"
#include "property_tests/verify.h"
#include "tests/property_tests/mutants/find_mutant.h"
#include "tests/property_tests/mutants/names_of_mutants.h"

namespace ringlab::mutants {
namespace {

constexpr int kLeastNamed = 140;

/// All modifiers for what has them: evidence is made with each of them alone.
verify::Case failing_case(const Mutant& mutant) {
  verify::Case c;
  c.shape = {1, 2, 1, 6, 6, 3, 2};
  c.ranks = 3;
  const bool modified = mutant.subject.can.modifiers.any();
  if (modified) c.modifiers = {.softcap = 2, .alibi = true, .sinks = true, .dropout_percent = 40};
  return c;
}

std::vector<std::string> names_of(const Mutant& mutant) {
  const bool of_messages = mutant.info.id.find("message") != std::string::npos;
  const verify::Law& law = verify::find_law(of_messages ? "P68" : "equals_reference");
  std::vector<std::string> ids;
  for (const verify::Suspect& suspect :
       verify::diagnose(mutant.subject, law, failing_case(mutant)).explains) {
    ids.push_back(suspect.id);
  }
  return ids;
}

TEST(NamesOfMutants, are_right_and_most_mutants_have_one) {
  int named = 0;
  for (const Mutant& mutant : all_mutants()) {
    const std::vector<std::string> ids = names_of(mutant);
    if (ids.size() != 1) continue;
    ++named;
    const auto right = names_of_mutants().find(mutant.info.id);
    if (right == names_of_mutants().end()) {
      ADD_FAILURE() << mutant.info.id << " (" << mutant.info.breaks << ") is called "
                    << ids.front();
      continue;
    }
    EXPECT_EQ(ids.front(), right->second) << mutant.info.id << ": " << mutant.info.breaks;
  }
  RecordProperty("named", named);
  EXPECT_GE(named, kLeastNamed) << "of " << all_mutants().size();
}

// Hypotheses are tried pair by pair: of a case as long as laws draw them that took for ever.
TEST(NamesOfMutants, are_looked_for_on_cases_that_are_not_too_long) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.info.id != "keys_counted_in_16_bits") continue;
    const verify::Law& law = verify::find_law("far_positions");
    const auto failure = verify::verify_law(mutant.subject, law, {.cases_per_law = 10}).failure;
    ASSERT_TRUE(failure);
    EXPECT_GT(failure->shrunk.shape.kv_tokens, 1 << 15);
    EXPECT_LE(verify::diagnose(mutant.subject, law, failure->shrunk).explains.size(), 1u);
    return;
  }
  FAIL() << "no such mutant";
}

TEST(NamesOfMutants, are_known_mistakes) {
  std::set<std::string> known;
  for (const verify::Suspect& suspect : verify::known_mistakes()) known.insert(suspect.id);
  for (const auto& [mutant, name] : names_of_mutants()) {
    EXPECT_TRUE(known.contains(name)) << mutant << ": " << name;
  }
}

TEST(NamesOfMutants, come_with_the_ranks_of_the_run_whose_messages_show_them) {
  const verify::Subject& subject = find_mutant("overlapped_ring_slot_freed_too_early").subject;
  verify::Case two, four;  // two ranks have a slot that nothing comes into again
  two.shape = four.shape = {1, 1, 1, 8, 8, 2, 2};
  two.ranks = 2, four.ranks = 4;
  const auto elsewhere = verify::found_by_events(subject, {two, four});
  ASSERT_TRUE(elsewhere);
  EXPECT_THAT(elsewhere->where, ::testing::EndsWith(" (of 4 ranks)"));
  const auto here = verify::found_by_events(subject, {four});
  ASSERT_TRUE(here);
  EXPECT_THAT(here->where, ::testing::Not(::testing::HasSubstr("ranks)")));
}

TEST(NamesOfMutants, are_given_to_no_legal_variant) {
  for (const verify::Subject& subject : legal_variants()) {
    EXPECT_THAT(names_of({{subject.name, "", "", "", ""}, subject}), ::testing::IsEmpty())
        << subject.name;
  }
}

}  // namespace
}  // namespace ringlab::mutants
