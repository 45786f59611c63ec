#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "property_tests/generators/cases.h"
#include "property_tests/laws/trial.h"

namespace ringlab::verify {
namespace {

Case case_of(Family family, DType dtype) {
  Case c;
  c.seed = 42;
  c.shape = {2, 4, 2, 11, 13, 3, 2};
  c.family = family;
  c.dtype = dtype;
  return c;
}

std::uint64_t hash_of(const AttentionTensors& data) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const Tensor<double>* x : {&data.q, &data.k, &data.v}) {
    for (const double value : x->values()) {
      hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3ull;
    }
  }
  return hash;
}

TEST(Tensors, are_the_same_on_every_machine) {
  const std::uint64_t kGolden[kFamilies] = {
      0x107b2f7eb2df0c95ull, 0x3071115832df0c95ull, 0x5d99746612df0c95ull, 0x68956d2972df0c95ull,
      0x5eced65dd2df0c95ull, 0x5b4ed7ef52df0c95ull, 0xe1d0bdd3f2df0c95ull, 0x4bc2dd5cf2df0c95ull,
      0xb6cf922092df0c95ull, 0x10ed8a9f52df0c95ull, 0xa4c5896392df0c95ull, 0x9ed74b2c12df0c95ull,
      0xa44e3a8152df0c95ull, 0xa9ac1847b2df0c95ull};
  for (int f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    EXPECT_EQ(hash_of(make_tensors(case_of(family, DType::f32))), kGolden[f])
        << family_name(family);
  }
}

TEST(Tensors, hold_values_that_their_dtype_can_represent) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (int f = 0; f < kFamilies; ++f) {
      const AttentionTensors data = make_tensors(case_of(static_cast<Family>(f), dtype));
      for (const Tensor<double>* x : {&data.q, &data.k, &data.v}) {
        for (const double value : x->values()) {
          ASSERT_TRUE(std::isfinite(value));
          ASSERT_EQ(round_to(dtype, value), value);
        }
      }
    }
  }
}

TEST(Tensors, differ_between_batches_and_heads) {
  for (int f = 0; f < kFamilies; ++f) {
    const AttentionTensors data = make_tensors(case_of(static_cast<Family>(f), DType::f32));
    for (const Tensor<double>* x : {&data.q, &data.k, &data.v}) {
      std::set<std::vector<double>> heads;
      for (std::int64_t b = 0; b < x->extents().batch; ++b) {
        for (std::int64_t h = 0; h < x->extents().heads; ++h) {
          heads.insert(pick_heads(pick_batches(*x, {b}), {h}).values());
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(heads.size()), x->extents().batch * x->extents().heads)
          << family_name(static_cast<Family>(f));
    }
  }
}

/// Scores of the first head.
std::vector<std::vector<double>> scores_of(Family family) {
  const Case c = case_of(family, DType::f32);
  const Trial trial = make_trial(c);
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < c.shape.q_tokens; ++i) {
    rows.emplace_back();
    for (std::int64_t j = 0; j < c.shape.kv_tokens; ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < c.shape.head_dim; ++d) {
        dot += trial.data.q(0, 0, i, d) * trial.data.k(0, 0, j, d);
      }
      rows.back().push_back(dot * trial.problem.scale);
    }
  }
  return rows;
}

TEST(Tensors, have_the_scores_that_their_family_promises) {
  for (const auto& row : scores_of(Family::late_maximum)) {
    EXPECT_GT(row.back(), row.front() + 5);
  }
  for (const auto& row : scores_of(Family::early_maximum)) {
    EXPECT_GT(row.front(), row.back() + 5);
  }
  for (const auto& row : scores_of(Family::peaked)) {
    EXPECT_GT(*std::max_element(row.begin(), row.end()), 25);
  }
  for (const auto& row : scores_of(Family::common_shift)) {
    const auto [least, most] = std::minmax_element(row.begin(), row.end());
    EXPECT_GT(std::abs(*least), 300);
    EXPECT_LT(*most - *least, 50);
  }
  double widest = 0;
  for (const auto& row : scores_of(Family::huge_gaps)) {
    const auto [least, most] = std::minmax_element(row.begin(), row.end());
    widest = std::max(widest, *most - *least);
  }
  EXPECT_GT(widest, 200);
}

TEST(Tensors, of_the_subnormal_family_hold_subnormal_values) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const AttentionTensors data = make_tensors(case_of(Family::subnormal, dtype));
    int subnormal = 0;
    for (const double v : data.v.values()) {
      subnormal += v != 0 && std::abs(v) < dtype_info(dtype).min_normal;
    }
    EXPECT_GT(subnormal, 5);
  }
}

TEST(Tensors, keep_their_first_rows_when_tokens_are_taken_away) {
  Case c = case_of(Family::normal, DType::f32);
  const AttentionTensors large = make_tensors(c);
  c.shape.kv_tokens = 4;
  const AttentionTensors small = make_tensors(c);
  EXPECT_EQ(small.k.values(), pick_tokens(large.k, {0, 1, 2, 3}).values());
  EXPECT_EQ(small.v.values(), pick_tokens(large.v, {0, 1, 2, 3}).values());
  EXPECT_EQ(small.q.values(), large.q.values());
}

}  // namespace
}  // namespace ringlab::verify
