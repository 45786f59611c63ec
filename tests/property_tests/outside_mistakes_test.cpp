// Mistakes of kernels from outside that no law had seen, or that were given a name that was false.
#include <gmock/gmock.h>

#include <bit>
#include <map>
#include <utility>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/experiments.h"
#include "property_tests/generators/masks.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Hides = std::function<bool(const Problem& problem, std::int64_t i, std::int64_t j)>;

/// The naive loops, as somebody's from outside, that do not see what `hides` says.
Subject blind(const Hides& hides) {
  Subject subject = naive_subject();
  subject.can.add({Ability::foreign});
  const auto run = subject.run;
  subject.run = [=](const AttentionInput& input, const RunOptions& options) {
    AttentionInput seen = input;
    const Shape& shape = input.problem.shape;
    use_pairs(seen.problem, make_pairs(shape.q_tokens, shape.kv_tokens, [&](auto i, auto j) {
                return input.problem.mask.allows(i, j) && !hides(input.problem, i, j);
              }));
    return run(seen, options);
  };
  return subject;
}

bool is_caught(const Subject& subject, const char* law) {
  return verify_law(subject, find_law(law), {.cases_per_law = 100}).failure.has_value();
}

std::vector<std::string> names_of(const Subject& subject, const Case& failing) {
  std::vector<std::string> ids;
  for (const Suspect& suspect : diagnose(subject, find_law("P37"), failing).explains) {
    ids.push_back(suspect.id);
  }
  return ids;
}

TEST(OutsideMistakes, a_window_that_begins_late_at_multiples_of_64_is_caught) {
  const Subject subject = blind([](const Problem& problem, auto i, auto j) {
    for (const MaskTerm& term : problem.mask.terms()) {
      const auto* window = std::get_if<WindowMask>(&term);
      if (window == nullptr || window->left == 0 || window->left % 64 != 0) continue;
      if (i + problem.shape.kv_tokens - problem.shape.q_tokens - window->left == j) return true;
    }
    return false;
  });
  EXPECT_TRUE(is_caught(subject, "P37"));
}

TEST(OutsideMistakes, a_mask_remembered_by_the_shape_is_caught) {
  std::map<std::pair<std::int64_t, std::int64_t>, Mask> remembered;
  const Subject subject = blind([&](const Problem& problem, auto i, auto j) {
    if (problem.mask.terms().empty()) return false;
    const auto key = std::pair(problem.shape.q_tokens, problem.shape.kv_tokens);
    return !remembered.try_emplace(key, problem.mask).first->second.allows(i, j);
  });
  EXPECT_TRUE(is_caught(subject, "same_call"));
}

TEST(OutsideMistakes, a_tail_has_the_name_of_its_own_length) {
  const Subject subject = blind([](const Problem& problem, auto, auto j) {
    const std::int64_t keys = problem.shape.kv_tokens;
    return keys > 128 && j >= keys / 128 * 128;
  });
  Case failing;
  failing.shape = {1, 1, 1, 1, 130, 1, 1};
  EXPECT_THAT(names_of(subject, failing), ElementsAre("mask.tail_of_128_dropped"));
}

/// The channels that fill vectors of some length, the rest 0.
Tensor<double> whole_channels(const TensorView<const double>& x, std::int64_t vector) {
  Tensor<double> whole(x.extents);
  for_each_index(x.extents, [&](auto b, auto h, auto t, auto c) {
    if (c < x.extents.channels / vector * vector) whole(b, h, t, c) = x(b, h, t, c);
  });
  return whole;
}

/// The naive loops on changed inputs.
Subject given(const std::function<void(AttentionInput&, Tensor<double>&)>& change) {
  Subject subject = naive_subject();
  subject.can.add({Ability::foreign});
  subject.run = [=, run = subject.run](const AttentionInput& input, const RunOptions& options) {
    AttentionInput seen = input;
    Tensor<double> kept;
    change(seen, kept);
    return run(seen, options);
  };
  return subject;
}

TEST(OutsideMistakes, channels_beyond_whole_vectors_have_the_name_of_that_length) {
  Case failing;
  failing.shape = {1, 1, 1, 1, 2, 1, 1};
  for (const std::int64_t vector : {4, 8, 16, 32, 64}) {
    const Subject scores = given([=](AttentionInput& input, Tensor<double>& kept) {
      kept = whole_channels(input.k, vector);
      input.k = kept.view();
    });
    EXPECT_THAT(names_of(scores, failing),
                ElementsAre("channels.tail_of_" + std::to_string(vector) + "_dropped"));
    const Subject values = given([=](AttentionInput& input, Tensor<double>& kept) {
      kept = whole_channels(input.v, vector);
      input.v = kept.view();
    });
    EXPECT_THAT(names_of(values, failing),
                ElementsAre("channels.value_tail_of_" + std::to_string(vector) + "_dropped"));
  }
}

TEST(OutsideMistakes, outputs_that_are_cut_have_their_name) {
  Subject subject = given([](AttentionInput& input, auto&) { input.problem.dtype = DType::f32; });
  subject.can.dtypes = {DType::bf16};
  subject = with_results(subject, [](RunResult& result, const auto&, const auto&) {
    for (double& x : result.output.out.values()) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      x = std::bit_cast<float>(bits & 0xffff0000u);
    }
  });
  Case failing;
  failing.dtype = DType::bf16;
  failing.shape = {1, 1, 1, 1, 2, 1, 3};
  EXPECT_THAT(names_of(subject, failing), ElementsAre("precision.output_cut"));
}

// With 17 keys and no more, this is what the dropped tail of a vector of 16 looks like.
TEST(OutsideMistakes, what_fits_one_length_only_has_no_name) {
  const Subject subject = blind([](const Problem& problem, auto, auto j) {
    return problem.shape.kv_tokens == 17 && j == 16;
  });
  Case failing;
  failing.shape = {1, 1, 1, 1, 17, 1, 1};
  EXPECT_THAT(names_of(subject, failing), IsEmpty());
}

TEST(OutsideMistakes, answers_that_change_by_themselves_are_said_to_and_get_no_name) {
  int calls = 0;
  const Subject subject =
      blind([&](const Problem&, auto, auto j) { return j == 0 && ++calls % 7 == 3; });
  Case failing;
  failing.shape = {1, 1, 1, 3, 5, 2, 2};
  for (const char* law : {"P70", "P65", "equals_reference"}) {
    const Diagnosis diagnosis = diagnose(subject, find_law(law), failing);
    EXPECT_THAT(diagnosis.explains, IsEmpty()) << law;
    EXPECT_THAT(diagnosis.findings, ElementsAre(HasSubstr("other numbers each time"))) << law;
  }
}

TEST(OutsideMistakes, answers_that_change_within_rounding_are_no_reads_of_what_nobody_wrote) {
  Case failing;
  failing.shape = {1, 1, 1, 3, 5, 2, 2};
  Subject subject = with_bits_that_differ(naive_subject());
  const Diagnosis promised = diagnose(subject, find_law("P38"), failing);
  EXPECT_THAT(promised.explains, IsEmpty());
  EXPECT_THAT(promised.findings, ElementsAre(HasSubstr("no further apart than rounding")));
  subject.can.drop({Ability::deterministic});
  const Diagnosis free = diagnose(subject, find_law("equals_reference"), failing);
  EXPECT_THAT(free.explains, IsEmpty());
  EXPECT_THAT(free.findings, IsEmpty());
}

// Whatever law is running when a call goes wrong is broken, and means nothing.
TEST(OutsideMistakes, a_law_that_is_broken_now_and_then_gives_no_name) {
  int calls = 0;
  Subject subject = with_results(naive_subject(), [&](RunResult& result, const auto&, const auto&) {
    if (++calls % 7 == 0 && result.output.out.size() > 0) result.output.out.values()[0] += 1;
  });
  subject.can.add({Ability::foreign});
  Case failing;
  failing.shape = {1, 1, 1, 3, 5, 2, 2};
  EXPECT_FALSE(found_by_laws(subject, evidence_cases(failing, subject.can)).any());
}

void expect_to_hold(const Subject& subject, std::initializer_list<const char*> laws) {
  for (const char* law : laws) {
    const LawVerdict verdict = verify_law(subject, find_law(law), {.cases_per_law = 60});
    EXPECT_FALSE(verdict.failure) << law << ": " << verdict.failure->message;
  }
}

TEST(LegalArithmetic, of_outputs_stored_in_another_type_holds_where_answers_are_exact) {
  Subject subject = with_results(naive_subject(), [](RunResult& result, const auto&, const auto&) {
    for (double& value : result.output.out.values()) value = round_to(DType::bf16, value);
  });
  subject.can.dtypes = {DType::f32};
  EXPECT_TRUE(is_caught(subject, "R"));
  expect_to_hold(with_profile(subject,
                              [](NumericsProfile& profile) {
                                profile.u_partial = 0x1p-8;
                                profile.product_underflow = 0x1p-133;
                              }),
                 {"R", "P28", "P31", "P33-narrow"});
}

TEST(LegalArithmetic, of_queries_that_are_scaled_first_holds_with_dyadic_scores) {
  Subject subject = naive_subject();
  subject.can.dtypes = {DType::f32};
  subject.run = [run = subject.run](const AttentionInput& input, const RunOptions& options) {
    Tensor<double> q(input.q.extents);
    for_each_index(q.extents(), [&](auto b, auto h, auto i, auto c) {
      q(b, h, i, c) = round_to(DType::bf16, input.problem.scale * input.q(b, h, i, c));
    });
    AttentionInput scaled = input;
    scaled.q = q.view();
    scaled.problem.scale = 1;
    return run(scaled, options);
  };
  EXPECT_TRUE(is_caught(subject, "Y"));
  expect_to_hold(with_profile(subject, [](NumericsProfile& profile) { profile.u_query = 0x1p-8; }),
                 {"Y"});
}

TEST(OutsideMistakes, borders_of_masks_come_to_the_edges_of_tiles) {
  std::map<std::int64_t, int> lefts;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Draws draws(seed);
    const CaseMask mask = with_borders_at_tiles("window:3,inf", draws, 130);
    const auto& window = std::get<WindowMask>(mask.terms().front());
    EXPECT_EQ(window.right, WindowMask::kUnlimited);
    ++lefts[window.left];
  }
  for (const std::int64_t tile : {16, 32, 64, 128}) {
    EXPECT_GT(lefts[tile], lefts[tile + 1]) << tile;
    EXPECT_GT(lefts[tile + 1], 5) << tile;
    EXPECT_GT(lefts[tile - 1], 5) << tile;
  }
}

}  // namespace
}  // namespace ringlab::verify
