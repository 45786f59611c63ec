// Stages of others: their own functions run, in a process of their own, and are judged as the stage
// they stand for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property_tests/generators/cases.h"
#include "property_tests/stage_libraries/run_bytes.h"
#include "property_tests/stage_libraries/stage_subject.h"
#include "property_tests/verify.h"
#include "reference/core/options/option_table.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

Subject library(const std::string& edit) {
  return stage_library_subject(std::string(RINGLAB_STAGE_LIBRARIES) + "/libstage_" + edit + ".so");
}

Case small_case(int ranks) {
  Case c;
  c.shape = {1, 2, 1, 12, 12, 4, 3};
  c.ranks = ranks;
  c.transport = TransportKind::simulated;
  return c;
}

RunResult run(const Subject& subject, const Case& c) {
  const AttentionTensors tensors = make_tensors(c);
  return subject.run(tensors.input(make_problem(c)), make_options(c));
}

TEST(StageLibrary, gives_the_bits_and_figures_of_the_stage_compiled_here) {
  const Subject theirs = library("right"), ours = find_subject("ring");
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    Draws draws(seed, {});
    const Case c = limited_to(random_case(draws), theirs.can);
    SCOPED_TRACE(to_token(c));
    const RunResult got = run(theirs, c), expected = run(ours, c);
    EXPECT_EQ(got.output.out.values(), expected.output.out.values());
    EXPECT_EQ(got.output.lse.values(), expected.output.lse.values());
    ASSERT_EQ(got.ranks.size(), expected.ranks.size());
    for (std::size_t rank = 0; rank < got.ranks.size(); ++rank) {
      EXPECT_EQ(got.ranks[rank].sent_bytes, expected.ranks[rank].sent_bytes);
      EXPECT_EQ(got.ranks[rank].peak_kv_bytes, expected.ranks[rank].peak_kv_bytes);
      EXPECT_EQ(got.ranks[rank].visits.size(), expected.ranks[rank].visits.size());
    }
  }
}

// Functions of the same name in the process that loads it must not take the place of its own.
TEST(StageLibrary, runs_its_own_functions) {
  const LawVerdict verdict = verify_law(library("one_hop_short"), find_law("equals_reference"), {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_LE(verdict.failure->shrunk.shape.kv_tokens, 2);
}

TEST(StageLibrary, that_crashes_is_lost_and_started_again) {
  const Subject subject = library("crashes_on_three_ranks");
  try {
    run(subject, small_case(3));
    FAIL() << "it writes to address 8";
  } catch (const SubjectLost& lost) {
    EXPECT_EQ(lost.ending(), Ending::crashed);
    EXPECT_THAT(lost.what(), HasSubstr("SIGSEGV"));
  }
  EXPECT_EQ(run(subject, small_case(2)).ranks.size(), 2u);
}

TEST(StageLibrary, says_who_waits_for_whom) {
  Case c = small_case(3);
  c.rendezvous = true;
  try {
    run(library("waits_for_its_send"), c);
    FAIL() << "nobody receives";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_THAT(error.what(), HasSubstr("a deadlock: rank 0 waits to send tag 0 to rank 1"));
  }
}

TEST(StageLibrary, says_what_its_ranks_asked_of_their_network) {
  const Case c = small_case(3);
  const auto calls_of = [&](const Subject& subject) {
    const RecordedRun record;
    run(subject, c);
    std::vector<std::vector<std::pair<CallKind, int>>> calls;
    for (const RankCalls& rank : record.ranks()) {
      EXPECT_TRUE(rank.ended);
      calls.emplace_back();
      for (const NetworkCall& call : rank.calls) calls.back().emplace_back(call.kind, call.tag);
    }
    return calls;
  };
  const auto here = calls_of(find_subject("ring"));
  EXPECT_EQ(here.size(), 3u);
  EXPECT_GT(here.front().size(), 10u);
  EXPECT_EQ(calls_of(library("right")), here);
}

TEST(StageLibrary, that_is_none_is_refused) {
  EXPECT_FALSE(names_a_stage_library("/dev/null"));
  EXPECT_TRUE(names_a_stage_library(std::string(RINGLAB_STAGE_LIBRARIES) + "/libstage_right.so"));
  EXPECT_THROW(stage_library_subject("/dev/null"), Error);
}

/// Sets the option to something else than it is; false where it sets no field.
bool change(const RunOption& option, RunOptions& options) {
  return std::visit(
      [&]<class Field>(const Field& field) {
        if constexpr (std::is_same_v<Field, std::monostate>) {
          return false;
        } else if constexpr (std::is_same_v<Field, ChoiceField>) {
          field.set(options, field.get(options) == 0 ? 1 : 0);
          return true;
        } else if constexpr (std::is_same_v<Field, ScheduleField>) {
          set_word(option, "double:3", options);
          return true;
        } else if constexpr (std::is_same_v<Field, bool RunOptions::*>) {
          options.*field = !(options.*field);
          return true;
        } else {
          options.*field += 3;
          return true;
        }
      },
      option.field);
}

TEST(RunBytes, carry_every_option_of_a_run) {
  const AttentionTensors tensors = make_tensors(small_case(2));
  const AttentionInput input = tensors.input(make_problem(small_case(2)));
  int changed = 0;
  for (const RunOption& option : run_options()) {
    RunOptions options;
    if (!change(option, options)) continue;
    ++changed;
    const auto bytes = bytes_of_run(input, options);
    EXPECT_NE(bytes, bytes_of_run(input, {})) << option.word;
    const auto back = run_of_bytes(bytes);
    EXPECT_EQ(bytes_of_run(back->input, back->options), bytes) << option.word;
  }
  EXPECT_GT(changed, 10);
}

TEST(RunBytes, carry_masks_layouts_and_gradients) {
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    Draws draws(seed, {});
    const Case c = random_case(draws);
    const AttentionTensors tensors = make_tensors(c);
    AttentionInput input = tensors.input(make_problem(c));
    const Tensor<double> dout = make_dout(c);
    input.dout = dout.view();
    RunOptions options = make_options(c);
    options.kv_layout = Layout(LayoutKind::striped, c.shape.kv_tokens, c.ranks);
    const auto bytes = bytes_of_run(input, options);
    const auto back = run_of_bytes(bytes);
    EXPECT_EQ(bytes_of_run(back->input, back->options), bytes) << to_token(c);
  }
}

TEST(RunBytes, that_are_garbled_are_an_error_of_the_environment) {
  const Case c = small_case(2);
  const AttentionTensors tensors = make_tensors(c);
  const AttentionInput input = tensors.input(make_problem(c));
  const std::vector<std::uint8_t> right = bytes_of_result(run(find_subject("ring"), c));
  EXPECT_EQ(result_of_bytes(right, input, 2).ranks.size(), 2u);
  EXPECT_THROW(result_of_bytes(right, input, 3), Error);
  EXPECT_THROW(result_of_bytes({}, input, 2), Error);
  for (std::size_t length = 0; length < right.size(); length += 7) {
    const std::vector<std::uint8_t> part(right.begin(),
                                         right.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(result_of_bytes(part, input, 2), Error) << length;
  }
  RankFailure failure{.rank = 1, .suspect = 0, .step = 2, .operation = "receive"};
  failure.reason = "none\n./mine.so   pass";
  try {
    result_of_bytes(bytes_of_error(RankError(failure)), input, 2);
    FAIL();
  } catch (const RankError& error) {
    EXPECT_EQ(error.failure().step, 2);
    EXPECT_EQ(error.failure().reason, "none?./mine.so   pass");
  }
  const Error thrown(ErrorKind::environment,
                     {"the stage", "a result", "none\n./mine.so   pass", ""});
  try {
    result_of_bytes(bytes_of_error(thrown), input, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().actual, "none?./mine.so   pass");
  }
}

}  // namespace
}  // namespace ringlab::verify
