#include "property_tests/rounds.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "property_tests/coverage.h"
#include "property_tests/generators/cases.h"
#include "reference/core/error.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

SubjectRounds rounds_of(const Subject& subject, const RoundsOptions& options) {
  RoundsProgress progress;
  return verify_in_rounds({subject}, options, progress).at(0);
}

/// The cases that reached the subject, by the seeds that no law changes.
struct Recorded {
  std::mutex mutex;
  std::multiset<std::string> runs;
};

/// Notes the inputs it is given: their bits are a case's.
Subject recording(const std::shared_ptr<Recorded>& recorded) {
  Subject subject = naive_subject();
  subject.run = [recorded, run = subject.run](const AttentionInput& input,
                                              const RunOptions& options) {
    std::string key = input.problem.mask.text() + "/" + std::to_string(options.ranks) + "/" +
                      std::to_string(options.tile_keys) + "/" +
                      std::to_string(input.problem.shape.q_tokens);
    for (const auto* view : {&input.q, &input.k, &input.v}) {
      for_each_index(view->extents, [&](auto b, auto h, auto t, auto c) {
        key += "," + std::to_string((*view)(b, h, t, c));
      });
    }
    {
      const std::lock_guard lock(recorded->mutex);
      recorded->runs.insert(key);
    }
    return run(input, options);
  };
  return subject;
}

TEST(Rounds, of_one_find_what_verify_subject_finds) {
  const VerifyOptions laws{.seed = 9, .cases_per_law = 5};
  const SubjectVerdict plain = verify_subject(naive_subject(Mistake::kv_head_modulo), laws);
  const SubjectRounds rounds =
      rounds_of(naive_subject(Mistake::kv_head_modulo), {.laws = laws, .threads = 2});
  EXPECT_EQ(rounds.whole_rounds, 1);
  ASSERT_EQ(rounds.verdict.laws.size(), plain.laws.size());
  EXPECT_FALSE(plain.passed());
  for (std::size_t i = 0; i < plain.laws.size(); ++i) {
    const LawVerdict& one = plain.laws[i];
    const LawVerdict& other = rounds.verdict.laws[i];
    EXPECT_EQ(one.id, other.id);
    EXPECT_EQ(one.cases, other.cases) << one.id;
    EXPECT_EQ(one.case_digest, other.case_digest) << one.id;
    EXPECT_EQ(one.skipped, other.skipped) << one.id;
    EXPECT_EQ(one.failure ? one.failure->token : "", other.failure ? other.failure->token : "");
  }
}

TEST(Rounds, never_repeat_a_case) {
  // What the subject is given differs between rounds, for a law that leaves cases as they are.
  std::set<std::uint64_t> seeds;
  std::set<std::string> digests;
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::set<std::uint64_t> of_this_round;
    Law law = find_law("equals_reference");
    law.check = [&](const Subject&, const Case& c) {
      of_this_round.insert(c.seed);
      return LawResult{};
    };
    const LawVerdict verdict = verify_law(naive_subject(), law, {.round = round});
    digests.insert(verdict.case_digest);
    for (const std::uint64_t seed : of_this_round) {
      EXPECT_EQ(seed / kCaseSeeds, round);
      EXPECT_TRUE(seeds.insert(seed).second);
    }
  }
  EXPECT_EQ(digests.size(), 50u);
  EXPECT_GT(seeds.size(), 50u * 38);
}

TEST(Rounds, with_one_seed_give_one_list_of_cases_however_many_threads_there_are) {
  const auto once = std::make_shared<Recorded>();
  const auto again = std::make_shared<Recorded>();
  const VerifyOptions laws{.seed = 3, .cases_per_law = 4, .laws = {"equals_reference", "P3", "U"}};
  const SubjectRounds first = rounds_of(recording(once), {.laws = laws, .rounds = 6});
  const SubjectRounds second =
      rounds_of(recording(again), {.laws = laws, .rounds = 6, .threads = 3});
  EXPECT_EQ(once->runs, again->runs);
  EXPECT_GE(once->runs.size(), 3u * 4 * 6);
  for (std::size_t i = 0; i < first.verdict.laws.size(); ++i) {
    EXPECT_EQ(first.verdict.laws[i].cases, 24);
    EXPECT_EQ(first.verdict.laws[i].case_digest, second.verdict.laws[i].case_digest);
    EXPECT_EQ(first.verdict.laws[i].classes, second.verdict.laws[i].classes);
    EXPECT_EQ(first.verdict.laws[i].worst_ratio, second.verdict.laws[i].worst_ratio);
  }
  EXPECT_EQ(first.whole_rounds, 6);
}

TEST(Rounds, leave_a_broken_law_alone_and_try_the_others_on) {
  RoundsProgress progress;
  const SubjectRounds rounds =
      verify_in_rounds(
          {naive_subject(Mistake::lse_in_base_two)},
          {.laws = {.cases_per_law = 10, .laws = {"equals_reference", "P3"}}, .rounds = 4},
          progress)
          .at(0);
  ASSERT_TRUE(rounds.verdict.laws[0].failure);
  EXPECT_LT(rounds.verdict.laws[0].cases, 10);
  EXPECT_FALSE(rounds.verdict.laws[1].failure);
  EXPECT_EQ(rounds.verdict.laws[1].cases, 40);
  EXPECT_EQ(progress.broken, 1);
  EXPECT_EQ(progress.turns, 1 + 4);
  const Replay replayed = replay(rounds.verdict.laws[0].failure->token, [](const std::string&) {
    return naive_subject(Mistake::lse_in_base_two);
  });
  EXPECT_EQ(replayed.result.outcome, Outcome::broken);
}

TEST(Rounds, look_into_a_few_crashes_only_and_tell_the_case_of_all) {
  Subject subject = naive_subject();
  std::atomic<int> calls = 0;
  subject.run = [&](const AttentionInput&, const RunOptions&) -> RunResult {
    ++calls;
    throw SubjectLost(Ending::crashed, {"naive", "an answer", "it crashed", ""});
  };
  const SubjectRounds rounds = rounds_of(subject, {.laws = {.seed = 3, .cases_per_law = 5}});
  int broken = 0, looked_into = 0;
  for (const LawVerdict& law : rounds.verdict.laws) {
    if (!law.failure) continue;
    ++broken;
    EXPECT_FALSE(law.failure->token.empty());
    looked_into += law.failure->repeats > 0;
    if (broken > 3) {
      EXPECT_EQ(law.failure->shrinks, 0) << law.id;
      EXPECT_EQ(law.failure->doubt(), "") << law.id;
    }
  }
  EXPECT_GT(broken, 20);
  EXPECT_EQ(looked_into, 3);
  EXPECT_LT(calls, 3 * 100 + 2 * broken);
}

TEST(Rounds, find_in_a_later_round_what_an_earlier_one_missed) {
  Subject subject = naive_subject();
  std::atomic<int> runs = 0;
  subject.run = [&runs, run = subject.run](const AttentionInput& input, const RunOptions& options) {
    RunResult result = run(input, options);
    if (++runs > 25 && result.output.out.extents().tokens > 0) {
      for (double& value : result.output.out.values()) value += 1;
    }
    return result;
  };
  const SubjectRounds rounds = rounds_of(
      subject, {.laws = {.cases_per_law = 10, .laws = {"equals_reference"}}, .rounds = 9});
  ASSERT_TRUE(rounds.verdict.laws[0].failure);
  EXPECT_GE(rounds.verdict.laws[0].failure->shrunk.seed, kCaseSeeds);
}

TEST(Rounds, end_when_the_time_is_over_and_give_every_subject_its_share) {
  Subject slow = naive_subject();
  slow.name = "slow";
  slow.run = [run = slow.run](const AttentionInput& input, const RunOptions& options) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return run(input, options);
  };
  RoundsProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<SubjectRounds> rounds =
      verify_in_rounds({slow, naive_subject()},
                       {.laws = {.cases_per_law = 2, .laws = {"equals_reference", "P3", "U"}},
                        .rounds = INT64_MAX,
                        .seconds = 2,
                        .threads = 1},
                       progress);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GE(seconds, 2);
  EXPECT_LT(seconds, 20);
  EXPECT_GT(rounds[1].whole_rounds, rounds[0].whole_rounds);
  EXPECT_GT(rounds[0].verdict.laws[0].cases, 0);
  // Turn by turn the slow one would have a hundred times as much; a busy machine may make some
  // turns long.
  const double its = rounds[0].verdict.seconds, others = rounds[1].verdict.seconds;
  EXPECT_LT(std::max(its, others), 20 * std::min(its, others));
}

TEST(Rounds, end_at_once_when_interrupted_and_say_what_was_not_tried) {
  int asked = 0;
  RoundsProgress progress;
  const SubjectRounds rounds = verify_in_rounds({naive_subject()},
                                                {.laws = {.laws = {"equals_reference", "P3"}},
                                                 .rounds = INT64_MAX,
                                                 .interrupted = [&asked] { return ++asked > 12; }},
                                                progress)
                                   .at(0);
  EXPECT_EQ(rounds.whole_rounds, 0);
  EXPECT_GT(rounds.verdict.laws[0].cases, 0);
  EXPECT_LT(rounds.verdict.laws[0].cases, 12);
  EXPECT_EQ(rounds.verdict.laws[1].skipped, "no time was left");
  EXPECT_TRUE(rounds.verdict.laws[1].case_digest.empty());
}

TEST(Rounds, without_anything_to_try_end_by_themselves) {
  const SubjectRounds rounds =
      rounds_of(naive_subject(), {.laws = {.laws = {"P64"}}, .rounds = INT64_MAX, .threads = 2});
  EXPECT_THAT(rounds.verdict.laws[0].skipped, Not(IsEmpty()));
  EXPECT_NE(rounds.verdict.laws[0].skipped, "no time was left");
  RoundsProgress progress;
  EXPECT_THAT(verify_in_rounds({}, {}, progress), IsEmpty());
}

TEST(Rounds, pass_on_what_cannot_be_verified_at_all) {
  RoundsProgress progress;
  EXPECT_THROW(verify_in_rounds({naive_subject()}, {.laws = {.laws = {"nonsense"}}}, progress),
               Error);
}

TEST(Coverage, of_all_laws_reaches_every_class_that_a_subject_supports) {
  const VerifyOptions laws{.cases_per_law = 12};
  const SubjectRounds rounds = rounds_of(naive_subject(), {.laws = laws, .threads = 2});
  const Coverage coverage = coverage_of(naive_subject(), rounds.verdict, laws);
  EXPECT_TRUE(coverage.is_judged);
  EXPECT_GE(coverage.cases, kCasesForCoverage);
  EXPECT_THAT(coverage.missing(), IsEmpty());
  EXPECT_TRUE(coverage.classes.front().required);
  for (const ClassShare& one : coverage.classes) EXPECT_LE(one.cases, coverage.cases) << one.name;
}

LawVerdict law_with(int cases, std::map<std::string, int> classes) {
  LawVerdict law;
  law.cases = cases;
  law.classes = std::move(classes);
  return law;
}

/// As many cases of every required class as there are cases, but for one.
SubjectVerdict poor_in(const std::string& name, int of_it) {
  std::map<std::string, int> classes;
  for (const std::string& required : required_classes(naive_subject().can)) {
    classes[required] = 1000;
  }
  EXPECT_EQ(classes.count(name), 1u);
  classes[name] = of_it;
  SubjectVerdict verdict;
  verdict.laws = {law_with(1000, classes)};
  return verdict;
}

TEST(Coverage, below_two_percent_of_a_required_class_is_missed) {
  for (const char* name : {"mask prefix", "values subnormal", "grouped heads", "no tokens",
                           "rows that see nothing", "tile tails", "dtype f32"}) {
    EXPECT_THAT(coverage_of(naive_subject(), poor_in(name, 19), {}).missing(), ElementsAre(name));
    EXPECT_THAT(coverage_of(naive_subject(), poor_in(name, 20), {}).missing(), IsEmpty());
    EXPECT_THAT(coverage_of(naive_subject(), poor_in(name, 0), {}).missing(), ElementsAre(name));
  }
}

TEST(Coverage, of_some_laws_or_few_cases_or_a_broken_subject_is_not_judged) {
  const SubjectVerdict poor = poor_in("mask prefix", 0);
  EXPECT_FALSE(coverage_of(naive_subject(), poor, {.laws = {"U"}}).is_judged);
  EXPECT_THAT(coverage_of(naive_subject(), poor, {.laws = {"U"}}).missing(), IsEmpty());
  SubjectVerdict few = poor;
  few.laws[0].cases = 499;
  EXPECT_THAT(coverage_of(naive_subject(), few, {}).missing(), IsEmpty());
  SubjectVerdict broken = poor;
  broken.laws[0].failure = LawFailure{};
  EXPECT_THAT(coverage_of(naive_subject(), broken, {}).missing(), IsEmpty());
}

TEST(Coverage, requires_nothing_that_a_subject_cannot_do) {
  Capabilities can = naive_subject().can;
  can.masks.of<PrefixMask>() = can.masks.of<WindowMask>() = false;
  can.drop({Ability::bit_masks, Ability::grouped_heads, Ability::many_ranks, Ability::backward});
  can.dtypes = {DType::f32};
  const std::vector<std::string> required = required_classes(can);
  for (const char* name :
       {"mask prefix", "mask bits", "mask window", "mask intersection", "grouped heads",
        "layout zigzag", "gradients", "dtype bf16", "slots 1", "dropout"}) {
    EXPECT_THAT(required, Not(Contains(name)));
  }
  EXPECT_THAT(required, Contains("mask causal"));
  EXPECT_THAT(required, Contains("dtype f32"));
  can.modifiers = kAllModifiers;
  can.add({Ability::backward, Ability::many_ranks, Ability::schedules});
  EXPECT_THAT(required_classes(can), Contains("dropout"));
  EXPECT_THAT(required_classes(can), Contains("gradients"));
  EXPECT_THAT(required_classes(can), Contains("schedule double"));
}

}  // namespace
}  // namespace ringlab::verify
