#include "reference/model/work.h"

#include <gtest/gtest.h>

#include "reference/core/layout.h"
#include "reference/model/closed_forms.h"

namespace ringlab::model {
namespace {

Problem grouped(DType dtype) {
  return {.shape = {.batch = 2,
                    .q_heads = 6,
                    .kv_heads = 3,
                    .q_tokens = 10,
                    .kv_tokens = 10,
                    .head_dim = 5,
                    .v_dim = 7},
          .dtype = dtype,
          .mask = {}};
}

TEST(Work, counts_the_products_of_every_pair) {
  // Two products forward, over head_dim and v_dim; backward scores, dP, dV, dK, dQ.
  EXPECT_EQ(work_of(grouped(DType::f32), Pass::forward).flops_per_pair, 2 * 2 * 6 * (5 + 7));
  EXPECT_EQ(work_of(grouped(DType::f32), Pass::backward).flops_per_pair,
            2 * 2 * 6 * (5 + 7 + 7 + 5 + 5));
}

TEST(Work, is_two_and_a_half_times_as_much_backward_where_widths_are_equal) {
  Problem problem = grouped(DType::bf16);
  problem.shape.v_dim = problem.shape.head_dim;
  EXPECT_EQ(2 * work_of(problem, Pass::backward).flops_per_pair,
            5 * work_of(problem, Pass::forward).flops_per_pair);
}

TEST(Work, has_bytes_of_the_type_or_of_a_narrower_wire) {
  const std::int64_t numbers = 2 * 3 * (5 + 7);
  const auto bytes = [&](DType dtype, WireFormat wire) {
    return work_of(grouped(dtype), Pass::forward, wire).kv_bytes_per_token;
  };
  EXPECT_EQ(bytes(DType::f64, WireFormat::exact), numbers * 8);
  EXPECT_EQ(bytes(DType::f64, WireFormat::f32), numbers * 4);
  EXPECT_EQ(bytes(DType::f32, WireFormat::bf16), numbers * 2);
  EXPECT_EQ(bytes(DType::f32, WireFormat::fp8), numbers);
  EXPECT_EQ(bytes(DType::f16, WireFormat::f32), numbers * 2);  // never wider than the numbers
}

TEST(Work, sends_sums_in_f32_backward_and_none_forward) {
  const std::int64_t numbers = 2 * 3 * (5 + 7);
  EXPECT_EQ(work_of(grouped(DType::bf16), Pass::forward).sum_bytes_per_token, 0);
  EXPECT_EQ(work_of(grouped(DType::bf16), Pass::backward).sum_bytes_per_token, numbers * 4);
  EXPECT_EQ(work_of(grouped(DType::f64), Pass::backward).sum_bytes_per_token, numbers * 8);
}

TEST(ClosedForms, a_hop_of_bf16_hides_from_flops_over_bytes_times_grouping_on) {
  Problem problem = grouped(DType::bf16);
  problem.shape.v_dim = problem.shape.head_dim = 128;
  Machine machine{.forward_flops = 600e12, .backward_flops = 600e12};
  const LinkSpeed link{.bytes_per_s = 50e9};
  const Work forward = work_of(problem, Pass::forward), backward = work_of(problem, Pass::backward);
  const double from = 600e12 / 50e9 * 3 / 6;
  EXPECT_DOUBLE_EQ(hidden_from_tokens(forward, machine, link, 1), from);
  EXPECT_DOUBLE_EQ(hidden_from_tokens(forward, machine, link, 0.5), 2 * from);
  EXPECT_DOUBLE_EQ(hidden_from_tokens(backward, machine, link, 0.5), 2.4 * from);
}

TEST(ClosedForms, know_the_share_of_blocks_that_are_alike) {
  const auto share = [](const char* mask, LayoutKind kind, int ranks, std::int64_t tokens) {
    const Layout rows(kind, tokens, ranks);
    const NeedMatrix need = need_matrix(parse_mask(mask).bind(tokens, tokens), rows, rows);
    return share_of_blocks(need, tokens, tokens);
  };
  EXPECT_EQ(share("full", LayoutKind::contiguous, 4, 64), 1);
  EXPECT_EQ(share("causal", LayoutKind::zigzag, 4, 64), 0.5);
  EXPECT_EQ(share("causal", LayoutKind::contiguous, 4, 64), std::nullopt);
  EXPECT_EQ(share("window:20,0", LayoutKind::zigzag, 4, 64), std::nullopt);
  EXPECT_EQ(share("full", LayoutKind::contiguous, 1, 64), std::nullopt);
}

}  // namespace
}  // namespace ringlab::model
