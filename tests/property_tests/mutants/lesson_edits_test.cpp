// What the lessons say under "Break it yourself": each edit is a planted mistake, and does what its
// lesson says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "property_tests/verify.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "tests/property_tests/mutants/find_mutant.h"

namespace ringlab::mutants {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verify::Case;
using verify::Family;

Case causal_case(std::int64_t tokens, int ranks) {
  Case c;
  c.shape = {1, 1, 1, tokens, tokens, 4, 3};
  c.ranks = ranks;
  c.mask = "causal";
  return c;
}

Case full_case(std::int64_t tokens, int ranks) {
  Case c = causal_case(tokens, ranks);
  c.mask = {};
  return c;
}

/// Tokens of which o or lse, in some head, is beyond what the correct stage promises.
std::vector<std::int64_t> wrong_tokens(const std::string& id, const AttentionInput& input,
                                       const RunOptions& options) {
  const verify::Subject& subject = find_mutant(id).subject;
  const AttentionOutput got = subject.run(input, options).output;
  const ExactForward exact = exact_forward(input);
  const ForwardTolerance allowed =
      forward_tolerance(input, exact, subject.profile(input.problem, options));
  std::vector<std::int64_t> wrong;
  for (std::int64_t token = 0; token < input.problem.shape.q_tokens; ++token) {
    bool right = std::abs(got.lse(0, 0, token, 0) - exact.lse(0, 0, token, 0)) <=
                 allowed.lse(0, 0, token, 0);
    for (std::int64_t c = 0; c < input.problem.shape.v_dim; ++c) {
      right = right && std::abs(got.out(0, 0, token, c) - exact.out(0, 0, token, c)) <=
                           allowed.out(0, 0, token, c);
    }
    if (!right) wrong.push_back(token);
  }
  return wrong;
}

std::vector<std::int64_t> wrong_tokens(const std::string& id, const Case& c) {
  const AttentionTensors tensors = make_tensors(c);
  return wrong_tokens(id, tensors.input(make_problem(c)), make_options(c));
}

/// The smallest case that breaks the comparison with the reference.
Case smallest_failure(const std::string& id) {
  const auto verdict =
      verify::verify_law(find_mutant(id).subject, verify::find_law("equals_reference"), {});
  if (!verdict.failure) throw std::runtime_error(id + " is not found");
  return verdict.failure->shrunk;
}

TEST(LessonEdits, of_attention_without_the_maximum_leave_all_outputs_right) {
  const Case c = full_case(16, 2);
  const AttentionTensors tensors = make_tensors(c);
  const AttentionInput input = tensors.input(make_problem(c));
  const auto got =
      find_mutant("attention_lse_without_the_maximum").subject.run(input, make_options(c));
  const auto right = verify::find_subject("attention").run(input, make_options(c));
  EXPECT_EQ(got.output.out.values(), right.output.out.values());
  EXPECT_NE(got.output.lse.values(), right.output.lse.values());
}

TEST(LessonEdits, of_attention_that_hide_with_a_number_spoil_rows_that_see_nothing) {
  Case c = causal_case(8, 2);
  EXPECT_THAT(wrong_tokens("attention_hides_with_a_number", c), IsEmpty());
  c.shape.kv_tokens = 5;  // queries stand at the end of the keys: the first three see none
  EXPECT_THAT(wrong_tokens("attention_hides_with_a_number", c), ElementsAre(0, 1, 2));
}

TEST(LessonEdits, of_broadcast_show_where_ranks_do_not_divide_tokens) {
  EXPECT_THAT(wrong_tokens("broadcast_wrong_shard_offset", full_case(1024, 4)), IsEmpty());
  const Case found = smallest_failure("broadcast_wrong_shard_offset");
  EXPECT_NE(found.shape.kv_tokens % found.ranks, 0);
}

/// Rows of the sequence whose first score is their largest.
std::vector<std::int64_t> rows_led_by_key_0(const AttentionInput& input) {
  std::vector<std::int64_t> rows;
  const Shape& s = input.problem.shape;
  const auto score = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < s.head_dim; ++c) sum += input.q(0, 0, i, c) * input.k(0, 0, j, c);
    return sum;
  };
  for (std::int64_t i = 0; i < s.q_tokens; ++i) {
    bool leads = true;
    for (std::int64_t j = 1; j < s.kv_tokens; ++j) leads = leads && score(i, j) <= score(i, 0);
    if (leads) rows.push_back(i);
  }
  return rows;
}

TEST(LessonEdits, of_online_softmax_spare_rows_whose_first_score_is_the_largest) {
  Case c = full_case(6, 1);
  std::size_t spared = 0;
  for (c.seed = 1; c.seed < 10; ++c.seed) {
    const AttentionTensors tensors = make_tensors(c);
    const AttentionInput input = tensors.input(make_problem(c));
    const auto wrong = wrong_tokens("online_softmax_no_acc_rescale", input, make_options(c));
    std::vector<std::int64_t> right;
    for (std::int64_t i = 0; i < c.shape.q_tokens; ++i) {
      if (!std::ranges::binary_search(wrong, i)) right.push_back(i);
    }
    EXPECT_EQ(right, rows_led_by_key_0(input)) << c.seed;
    spared += right.size();
  }
  EXPECT_GT(spared, 0u);
}

TEST(LessonEdits, of_online_softmax_lose_rows_whose_scores_are_far_below_zero) {
  Case c = full_case(4, 1);
  c.shape.head_dim = 1;
  c.scale = verify::ScaleKind::unit;
  AttentionTensors tensors = make_tensors(c);
  for (double& q : tensors.q.values()) q = 1;
  for (double& k : tensors.k.values()) k = -120;
  tensors.q(0, 0, 2, 0) = 0.5;  // scores of -60
  const auto wrong = wrong_tokens("online_softmax_max_starts_at_0", tensors.input(make_problem(c)),
                                  make_options(c));
  EXPECT_THAT(wrong, ElementsAre(0, 1, 3));
}

TEST(LessonEdits, of_flash_blocks_without_a_barrier_need_two_threads_to_show) {
  Case c = full_case(16, 1);
  c.tile_queries = 4;
  EXPECT_FALSE(wrong_tokens("flash_blocks_missing_barrier", c).empty());
  c.tile_queries = 1;
  EXPECT_THAT(wrong_tokens("flash_blocks_missing_barrier", c), IsEmpty());
}

TEST(LessonEdits, of_merge_are_right_without_a_mask_while_each_rank_has_a_token) {
  EXPECT_THAT(wrong_tokens("merge_inf_minus_inf", full_case(8, 8)), IsEmpty());
  EXPECT_FALSE(wrong_tokens("merge_inf_minus_inf", full_case(2, 8)).empty());
  // Chunks 2 and 3 are merged before they meet the others; rows 0 to 3 see nothing of either.
  EXPECT_THAT(wrong_tokens("merge_inf_minus_inf", causal_case(8, 4)), ElementsAre(0, 1, 2, 3));
}

TEST(LessonEdits, of_ring_miss_the_next_ranks_chunk) {
  const Case c = full_case(8, 4);
  const AttentionTensors tensors = make_tensors(c);
  const RunResult result = find_mutant("ring_one_hop_short")
                               .subject.run(tensors.input(make_problem(c)), make_options(c));
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<int> owners;
    for (const Visit& visit : result.ranks[static_cast<std::size_t>(rank)].visits) {
      owners.push_back(visit.owner);
    }
    EXPECT_THAT(owners, ElementsAre(rank, (rank + 3) % 4, (rank + 2) % 4)) << rank;
  }
}

TEST(LessonEdits, of_ring_that_wait_for_a_send_hang_where_nothing_is_buffered) {
  Case c = full_case(8, 3);
  c.transport = TransportKind::simulated;
  EXPECT_THAT(wrong_tokens("ring_send_send_deadlock", c), IsEmpty());
  c.rendezvous = true;
  try {
    wrong_tokens("ring_send_send_deadlock", c);
    FAIL() << "every rank waits for its neighbour";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::ContainsRegex("rank [0-2].*rank [0-2]"));
  }
}

TEST(LessonEdits, of_causal_ring_are_right_for_contiguous_causal_problems_only) {
  Case c = causal_case(24, 4);
  EXPECT_THAT(wrong_tokens("causal_ring_skips_by_rank", c), IsEmpty());
  c.layout = LayoutKind::zigzag;
  EXPECT_FALSE(wrong_tokens("causal_ring_skips_by_rank", c).empty());
  c = full_case(24, 4);
  EXPECT_FALSE(wrong_tokens("causal_ring_skips_by_rank", c).empty());
}

TEST(LessonEdits, of_overlapped_ring_need_a_network_that_reads_late) {
  Case c = full_case(24, 5);
  c.slots = 2;
  int found = 0;
  for (c.delay_seed = 0; c.delay_seed < 20; ++c.delay_seed) {
    c.transport = TransportKind::threads;
    EXPECT_THAT(wrong_tokens("overlapped_ring_slot_freed_too_early", c), IsEmpty());
    c.transport = TransportKind::simulated;
    found += wrong_tokens("overlapped_ring_slot_freed_too_early", c).empty() ? 0 : 1;
  }
  EXPECT_GT(found, 0);
}

TEST(LessonEdits, of_balanced_ring_leave_all_rows_right_and_most_at_other_tokens) {
  Case c = causal_case(32, 8);
  c.layout = LayoutKind::zigzag;
  const AttentionTensors tensors = make_tensors(c);
  const AttentionInput input = tensors.input(make_problem(c));
  const auto wrong = wrong_tokens("balanced_ring_inverse_missing", c);
  std::vector<std::int64_t> all_but_the_first_part(30);
  for (std::int64_t i = 0; i < 30; ++i) all_but_the_first_part[static_cast<std::size_t>(i)] = i + 2;
  EXPECT_EQ(wrong, all_but_the_first_part);
  const auto sorted_lse = [&](const std::string& name, const verify::Subject& subject) {
    SCOPED_TRACE(name);
    std::vector<double> lse = subject.run(input, make_options(c)).output.lse.values();
    std::ranges::sort(lse);
    return lse;
  };
  EXPECT_EQ(sorted_lse("mutant", find_mutant("balanced_ring_inverse_missing").subject),
            sorted_lse("stage", verify::find_subject("balanced_ring")));
}

TEST(LessonEdits, of_skipping_ring_change_nothing_for_two_ranks) {
  EXPECT_THAT(wrong_tokens("overlapped_causal_ring_positions_stay_at_home", causal_case(24, 2)),
              IsEmpty());
  EXPECT_FALSE(
      wrong_tokens("overlapped_causal_ring_positions_stay_at_home", causal_case(24, 4)).empty());
}

TEST(LessonEdits, of_pairwise_ring_show_the_future_to_all_rows_but_the_last) {
  EXPECT_THAT(wrong_tokens("backward_looks_one_ahead", causal_case(6, 1)),
              ElementsAre(0, 1, 2, 3, 4));
}

/// Which of dq, dk and dv are beyond their bounds.
std::vector<std::string> wrong_gradients(const std::string& id, const Case& c) {
  const verify::Subject& subject = find_mutant(id).subject;
  const AttentionTensors tensors = make_tensors(c);
  const Tensor<double> dout = make_dout(c);
  AttentionInput input = tensors.input(make_problem(c));
  input.dout = dout.view();
  const auto got = subject.run(input, make_options(c)).gradients.value();
  const ExactBackward exact = exact_backward(input, *input.dout);
  const BackwardTolerance allowed = backward_tolerance(
      input, *input.dout, exact, subject.profile(input.problem, make_options(c)));
  std::vector<std::string> wrong;
  for (const TensorReport& report :
       {compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()),
        compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()),
        compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view())}) {
    if (!report.passed()) wrong.push_back(report.tensor);
  }
  return wrong;
}

TEST(LessonEdits, of_straight_backward_without_delta_leave_dv_right) {
  EXPECT_THAT(wrong_gradients("backward_no_delta", causal_case(12, 3)), ElementsAre("dq", "dk"));
}

TEST(LessonEdits, of_backward_are_right_on_one_rank) {
  EXPECT_THAT(wrong_gradients("backward_one_hop_short", causal_case(12, 1)), IsEmpty());
  EXPECT_THAT(wrong_gradients("backward_one_hop_short", causal_case(12, 3)),
              ElementsAre("dk", "dv"));
}

TEST(LessonEdits, of_bidirectional_are_right_for_an_odd_number_of_ranks) {
  EXPECT_THAT(wrong_tokens("bidirectional_middle_chunk_twice", full_case(20, 5)), IsEmpty());
  EXPECT_FALSE(wrong_tokens("bidirectional_middle_chunk_twice", full_case(20, 4)).empty());
}

TEST(LessonEdits, of_bidirectional_sides_need_a_mask_to_show) {
  EXPECT_THAT(wrong_tokens("bidirectional_sides_exchanged", full_case(20, 5)), IsEmpty());
  EXPECT_FALSE(wrong_tokens("bidirectional_sides_exchanged", causal_case(20, 5)).empty());
}

/// Rings of rings, on nodes of `width` ranks.
Case on_nodes(Case c, int width) {
  c.schedule = ScheduleKind::double_ring;
  c.node_ranks = width;
  return c;
}

TEST(LessonEdits, of_hierarchical_ranks_leave_every_answer_right_and_use_the_slow_links) {
  const Case c = on_nodes(causal_case(24, 8), 4);
  EXPECT_THAT(wrong_tokens("hierarchical_ranks_transposed", c), IsEmpty());
  const AttentionTensors tensors = make_tensors(c);
  const RunResult result = find_mutant("hierarchical_ranks_transposed")
                               .subject.run(tensors.input(make_problem(c)), make_options(c));
  EXPECT_EQ(result.ranks[2].node_messages, 2 * 2 * 3);  // every hop of its ring leaves the node
}

TEST(LessonEdits, of_hierarchical_blocks_cost_the_smaller_node_a_chunk) {
  const Case c = on_nodes(full_case(20, 5), 3);
  EXPECT_THAT(wrong_tokens("hierarchical_larger_node_cut_off", c),
              ElementsAre(12, 13, 14, 15, 16, 17, 18, 19));
}

/// Six query heads on `kv_heads` K/V heads.
Case grouped(Case c, std::int64_t kv_heads) {
  c.shape.q_heads = 6;
  c.shape.kv_heads = kv_heads;
  return c;
}

TEST(LessonEdits, of_heads_end_where_both_ends_have_as_many_heads) {
  EXPECT_FALSE(wrong_tokens("heads_come_home_reversed", grouped(full_case(9, 3), 3)).empty());
  EXPECT_FALSE(wrong_tokens("heads_come_home_reversed", grouped(full_case(9, 2), 2)).empty());
  EXPECT_THROW(wrong_tokens("heads_come_home_reversed", grouped(full_case(8, 2), 3)), Error);
}

TEST(LessonEdits, of_heads_without_a_group_never_compute_the_last_query_heads) {
  const Case c = grouped(full_case(8, 2), 2);
  const AttentionTensors tensors = make_tensors(c);
  const AttentionOutput got = find_mutant("heads_dealt_without_group")
                                  .subject.run(tensors.input(make_problem(c)), make_options(c))
                                  .output;
  for (std::int64_t head = 0; head < 6; ++head) {
    EXPECT_EQ(std::isnan(got.out(0, head, 0, 0)), head >= 4) << head;
  }
}

TEST(LessonEdits, of_documents_and_windows_are_right_without_a_mask) {
  const std::string id = "documents_and_windows_needs_transposed";
  EXPECT_THAT(wrong_tokens(id, full_case(12, 4)), IsEmpty());
  // Only the first rank sees nothing of other ranks.
  EXPECT_THAT(wrong_tokens(id, causal_case(12, 4)), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(LessonEdits, of_documents_and_windows_show_where_a_window_ends_at_the_border_of_a_chunk) {
  const std::string id = "documents_and_windows_border_pair_dropped";
  Case c = full_case(16, 4);
  for (const std::int64_t window : {3, 4}) {
    c.mask = "window:" + std::to_string(window) + ",0";
    EXPECT_THAT(wrong_tokens(id, c), IsEmpty()) << window;
  }
  c.mask = "window:5,0";
  EXPECT_THAT(wrong_tokens(id, c), ElementsAre(8, 12));
}

/// What `id` gives, and the stage that it was planted in.
struct Pair {
  AttentionOutput wrong, right;
};
Pair outputs_of(const std::string& id, const std::string& stage, const AttentionTensors& tensors,
                const Case& c) {
  const AttentionInput input = tensors.input(make_problem(c));
  const RunOptions options = make_options(c);
  return {find_mutant(id).subject.run(input, options).output,
          verify::find_subject(stage).run(input, options).output};
}

TEST(LessonEdits, of_compressed_wire_with_scales_of_the_keys_leave_every_lse_right) {
  const Case c = full_case(12, 3);
  const auto [wrong, right] =
      outputs_of("compressed_wire_scales_exchanged", "compressed_wire", make_tensors(c), c);
  EXPECT_EQ(wrong.lse.values(), right.lse.values());
  EXPECT_NE(wrong.out.values(), right.out.values());
}

TEST(LessonEdits, of_compressed_wire_with_too_small_a_scale_lose_1_9_and_keep_powers_of_two) {
  const Case c = full_case(12, 3);
  AttentionTensors tensors = make_tensors(c);
  for (const double largest : {2.0, 1.9}) {
    for (Tensor<double>* tensor : {&tensors.k, &tensors.v}) {
      for (double& x : tensor->values()) x = static_cast<float>(largest);
    }
    const auto [wrong, right] =
        outputs_of("compressed_wire_scale_too_small", "compressed_wire", tensors, c);
    EXPECT_EQ(wrong.out.values() == right.out.values(), largest == 2.0);
    EXPECT_EQ(std::isnan(wrong.out.values().front()), largest != 2.0);
  }
}

TEST(LessonEdits, of_decode_without_maxima_are_right_for_equal_keys) {
  const Case c = full_case(12, 3);
  AttentionTensors tensors = make_tensors(c);
  const auto some = outputs_of("decode_parts_not_rescaled", "decode", tensors, c);
  EXPECT_NE(some.wrong.out.values(), some.right.out.values());
  for (double& x : tensors.k.values()) x = 0.5;
  const auto equal = outputs_of("decode_parts_not_rescaled", "decode", tensors, c);
  EXPECT_EQ(equal.wrong.out.values(), equal.right.out.values());
}

TEST(LessonEdits, of_decode_with_queries_from_zero_are_right_where_all_is_seen) {
  const std::string id = "decode_queries_from_zero";
  EXPECT_THAT(wrong_tokens(id, full_case(12, 3)), IsEmpty());
  // Rank 0 has the first tokens.
  EXPECT_THAT(wrong_tokens(id, causal_case(12, 3)), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
}

/// Edits of which the lessons only ask what happens: something does, and it is found.
TEST(LessonEdits, that_end_in_a_question_are_found) {
  for (const char* id :
       {"causal_ring_local_positions", "overlapped_ring_one_slot_for_all",
        "overlapped_ring_waits_for_the_other_message", "balanced_ring_wrong_stripe_diagonal",
        "overlapped_causal_ring_finishes_before_the_last_hop",
        "overlapped_causal_ring_last_sends_never_waited_for"}) {
    const auto verdict = verify::verify_subject(find_mutant(id).subject, {.cases_per_law = 10});
    EXPECT_FALSE(verdict.passed()) << id;
  }
}

}  // namespace
}  // namespace ringlab::mutants
