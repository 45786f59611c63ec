// Planted mistakes behind the C interface are found as they are in this process.
#include "property_tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/verify.h"
#include "stages/common/stage.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/plugins/plugin_folder.h"

namespace ringlab::verify {
namespace {

Subject mutant_plugin(const std::string& name) {
  setenv("RINGLAB_MUTANT", name.c_str(), 1);
  return plugin_named("mutant");
}

SubjectVerdict verdict_of(const std::string& name, const VerifyOptions& options) {
  return verify_subject(mutant_plugin(name), options);
}

TEST(MutantPlugins, correct_stages_break_no_law) {
  for (const char* stage : {"ring", "backward", "optimized"}) {
    SCOPED_TRACE(stage);
    expect_laws_kept(mutant_plugin(stage), {.cases_per_law = 4}, 50);
  }
}

/// What a call has no words for.
const std::set<std::string>& mistakes_beyond_a_call() {
  static const std::set<std::string> ids = {
      // What ranks send, when, and how much they hold: a call has no schedules, slots or traffic.
      "broadcast_waits_before_it_receives", "heads_exchange_pair_by_pair",
      "decode_answers_one_by_one", "ring_send_send_deadlock", "ring_keeps_every_chunk",
      "wire_message_too_many", "engine_message_sent_twice", "schedule_send_first",
      "schedule_gradient_sent_unsummed",
      // Nodes: in a call every rank has one of its own.
      "hierarchical_ranks_transposed", "hierarchical_inner_ring_reversed",
      "hierarchical_larger_node_cut_off",
      // A lossy wire: a call has none to declare, and so the stage without a mistake is rejected, too.
      "compressed_wire_stale_scale", "compressed_wire_scale_too_small",
      "compressed_wire_scale_of_the_first_row", "compressed_wire_scales_exchanged",
      "compressed_wire_read_with_the_first_scale", "compressed_wire_not_clamped",
      // The caller's memory, of which the plugin of these tests makes dense copies.
      "strides_ignored", "gradient_strides_ignored", "key_strides_ignored_backwards",
      "offsets_in_31_bits", "query_scaled_in_place"};
  return ids;
}

constexpr const char* kLossy = "compressed_wire";

TEST(MutantPlugins, a_lossy_wire_is_beyond_a_call) {
  const VerifyOptions options{.cases_per_law = 60, .laws = {"equals_reference"}, .shrink = false};
  EXPECT_FALSE(verdict_of(kLossy, options).passed());
}

/// One mistake of each stage that has some within a call, and the stage without it is not rejected.
TEST(MutantPlugins, a_mistake_of_each_stage_is_found) {
  std::set<std::string> stages;
  for (const stages::Stage& stage : stages::all_stages()) {
    const bool is_beyond = schedule_traits(stage.schedule).has_nodes || stage.name == kLossy;
    if (!is_beyond) stages.insert(stage.name);
  }
  std::set<std::string> tried;
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    if (stages.count(mutant.info.stage) == 0) continue;
    if (mistakes_beyond_a_call().count(mutant.info.id) > 0) continue;
    if (!tried.insert(mutant.info.stage).second) continue;
    const VerifyOptions options{
        .cases_per_law = 60,
        .laws = {"equals_reference", "P58", "P60", "gradients_equal_reference"},
        .shrink = false};
    EXPECT_FALSE(verdict_of(mutant.info.id, options).passed()) << mutant.info.id;
    EXPECT_TRUE(verdict_of(mutant.info.stage, options).passed()) << mutant.info.stage;
  }
  EXPECT_EQ(tried, stages);
}

/// Slopes, a sink and dropped pairs cross the interface as they are.
TEST(MutantPlugins, mistakes_of_score_modifiers_are_found) {
  for (const char* mutant : {"modifiers_slopes_of_another_head", "modifiers_sink_once_per_chunk"}) {
    const VerifyOptions options{.cases_per_law = 60, .laws = {"equals_reference"}};
    const SubjectVerdict verdict = verdict_of(mutant, options);
    ASSERT_FALSE(verdict.passed()) << mutant;
    EXPECT_TRUE(verdict.laws.front().failure->shrunk.modifiers.any()) << mutant;
  }
}

/// The first law that a mistake breaks, and the case that is left when it is shrunk.
std::optional<LawVerdict> first_broken(const Subject& subject) {
  for (const Law& law : all_laws()) {
    LawVerdict verdict = verify_law(subject, law, {.cases_per_law = 20});
    if (verdict.failure) return verdict;
  }
  return std::nullopt;
}

/// What came of all mistakes.
struct Tally {
  int found = 0, beyond = 0, small = 0, named = 0, consistent = 0;

  void add(const Subject& subject, const LawVerdict& verdict) {
    const LawFailure& failure = *verdict.failure;
    const Diagnosis diagnosis = diagnose(subject, find_law(verdict.id), failure.shrunk);
    ++found;
    small += std::max(failure.shrunk.shape.q_tokens, failure.shrunk.shape.kv_tokens) <= kSmall;
    named += diagnosis.explains.size() == 1;
    consistent += diagnosis.explains.size() > 1;
    std::printf("%s\n  %s\n", failure.token.c_str(),
                diagnosis.explains.empty() ? "no name" : diagnosis.sentence().c_str());
  }

  static constexpr std::int64_t kSmall = 8;  ///< tokens
};

/// Takes minutes.
TEST(MutantPlugins, all_mistakes_that_a_call_can_carry_show_through_the_interface) {
  if (std::getenv("RINGLAB_ALL_MUTANTS") == nullptr) GTEST_SKIP() << "set RINGLAB_ALL_MUTANTS=1";
  Tally tally;
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    const std::string& id = mutant.info.id;
    if (mistakes_beyond_a_call().contains(id)) {
      std::printf("%s: beyond a call\n", id.c_str());
      ++tally.beyond;
      continue;
    }
    std::printf("%s: ", id.c_str());
    setenv("RINGLAB_MUTANT", id.c_str(), 1);
    const Subject subject = plugin_named("mutant");
    const std::optional<LawVerdict> verdict = first_broken(subject);
    EXPECT_TRUE(verdict.has_value()) << id << ": " << mutant.info.breaks;
    if (verdict) tally.add(subject, *verdict);
    std::fflush(stdout);
  }
  std::printf(
      "%d found, %d beyond a call; of those found %d with at most %d tokens, %d named, %d "
      "consistent with several names\n",
      tally.found, tally.beyond, tally.small, static_cast<int>(Tally::kSmall), tally.named,
      tally.consistent);
  EXPECT_EQ(tally.beyond, std::ssize(mistakes_beyond_a_call()));
  EXPECT_GE(tally.found, 80);
  EXPECT_GE(tally.small, 70);
}

}  // namespace
}  // namespace ringlab::verify
