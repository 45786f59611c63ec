// Declared errors, one by one: a kernel that is off by what it declares passes, and one that is off by ten
// times as much does not.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "property_tests/verify.h"
#include "reference/attention/query_row.h"

namespace ringlab::verify {
namespace {

using Declared = double NumericsProfile::*;

struct Term {
  const char* name;
  Declared member;
  double declared;
};

/// One row in double, off by `error` wherever the term allows it, in the directions that add up.
class OffRow {
 public:
  OffRow(const AttentionInput& input, Declared term, double error, const RowAddress& at)
      : in_(input), term_(term), error_(error), at_(at) {
    for (std::int64_t j = 0; j < input.problem.shape.kv_tokens; ++j) {
      if (!input.problem.mask.allows(at.query, j)) continue;
      keys_.push_back(j);
      scores_.push_back(score(j));
      top_ = std::max(top_, scores_.back());
    }
  }

  bool is_empty() const { return keys_.empty(); }

  double lse() const {
    double sum = 0;
    for (const double s : scores_) sum += std::exp(s - top_);
    const double lse = top_ + std::log(sum);
    return lse * (1 + of(&NumericsProfile::u_lse));
  }

  /// Keys above the mean weigh more than they should, the others less.
  double out(std::int64_t c) const {
    const double mean = sum(c, 0);
    return sum(c, mean >= 0 ? mean : -mean) * (1 + of(&NumericsProfile::u_partial));
  }

 private:
  double of(Declared term) const { return term == term_ ? error_ : 0; }
  double value(std::size_t n, std::int64_t c) const {
    return in_.v(at_.batch, at_.kv_head, keys_[n], c);
  }

  double score(std::int64_t j) const {
    double dot = 0;
    for (std::int64_t c = 0; c < in_.problem.shape.head_dim; ++c) {
      const double product =
          in_.q(at_.batch, at_.q_head, at_.query, c) * in_.k(at_.batch, at_.kv_head, j, c);
      const double side = product * (j % 2 == 0 ? 1 : -1) > 0 ? 1 : -1;  // up in even keys
      dot += product * (1 + side * of(&NumericsProfile::u_query) +
                        side * 2 * of(&NumericsProfile::u_product)) +
             (j % 2 == 0 ? 1 : -1) * of(&NumericsProfile::product_underflow);
    }
    return in_.problem.scale * dot;
  }

  /// The output of one channel; `mean` is where weights are pushed up or down.
  double sum(std::int64_t c, double mean) const {
    double acc = 0, row_sum = 0;
    for (std::size_t n = 0; n < keys_.size(); ++n) {
      const double v = value(n, c), side = v > mean ? 1 : -1, sign = v > 0 ? 1 : -1;
      const double exponent = (scores_[n] - top_) * (1 - side * of(&NumericsProfile::u_work));
      const double weight = std::exp(exponent) * (1 + side * of(&NumericsProfile::exp_error)) +
                            (1 + side) / 2 * of(&NumericsProfile::exp_underflow);
      const double rounded =
          side * of(&NumericsProfile::u_probability) + sign * 2 * of(&NumericsProfile::u_product);
      const double kept = weight * (1 + rounded) + sign * of(&NumericsProfile::p_underflow);
      acc = (acc + kept * v) * (1 + of(&NumericsProfile::u_accumulate));
      row_sum = (row_sum + weight * (1 - of(&NumericsProfile::u_row_sum))) *
                (1 - of(&NumericsProfile::u_accumulate));
    }
    return acc / row_sum;
  }

  const AttentionInput& in_;
  Declared term_;
  double error_;
  RowAddress at_;
  double top_ = -std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> keys_;
  std::vector<double> scores_;
};

/// A kernel for f32 that declares the term and is off by `times` as much.
Subject off_by(const Term& term, double times) {
  Subject subject;
  subject.name = term.name;
  subject.can.dtypes = {DType::f32};
  subject.can.drop({Ability::many_ranks, Ability::counts_traffic});
  subject.run = [term, times](const AttentionInput& input, const RunOptions&) {
    const Shape& s = input.problem.shape;
    RunResult result;
    result.output = {Tensor<double>(s.out()), Tensor<double>(s.lse())};
    for_each_index(s.lse(), [&](auto b, auto h, auto i, auto) {
      const OffRow row(
          input, term.member, times * term.declared,
          {.batch = b, .q_head = h, .kv_head = h / (s.q_heads / s.kv_heads), .query = i});
      const bool is_empty = row.is_empty();
      result.output.lse(b, h, i, 0) =
          is_empty ? -std::numeric_limits<double>::infinity() : round_to(DType::f32, row.lse());
      for (std::int64_t c = 0; c < s.v_dim; ++c) {
        result.output.out(b, h, i, c) = is_empty ? 0 : round_to(DType::f32, row.out(c));
      }
    });
    return result;
  };
  subject.profile = [term](const Problem& problem, const RunOptions&) {
    NumericsProfile profile = carried_profile(problem.dtype, 1);
    profile.*term.member = term.declared;
    return profile;
  };
  return subject;
}

bool passes(const Term& term, double times) {
  const LawVerdict verdict = verify_law(off_by(term, times), find_law("equals_reference"),
                                        {.cases_per_law = 300, .shrink = false});
  if (verdict.failure && times == 1) ADD_FAILURE() << verdict.failure->message;
  return !verdict.failure;
}

class DeclaredTerm : public ::testing::TestWithParam<Term> {};

TEST_P(DeclaredTerm, is_kept_once_and_not_ten_times) {
  EXPECT_TRUE(passes(GetParam(), 1));
  double least = 1.2;
  for (const double times : {1.2, 1.5, 2.0, 3.0, 5.0, 10.0}) {
    least = times;
    if (!passes(GetParam(), times)) break;
  }
  std::printf("  %-18s found from %.1f times what is declared\n", GetParam().name, least);
  EXPECT_FALSE(passes(GetParam(), 10));
}

INSTANTIATE_TEST_SUITE_P(
    Of, DeclaredTerm,
    ::testing::Values(Term{"u_accumulate", &NumericsProfile::u_accumulate, 0x1p-12},
                      Term{"u_work", &NumericsProfile::u_work, 0x1p-12},
                      Term{"exp_error", &NumericsProfile::exp_error, 0x1p-12},
                      Term{"u_probability", &NumericsProfile::u_probability, 0x1p-12},
                      Term{"u_row_sum", &NumericsProfile::u_row_sum, 0x1p-12},
                      Term{"p_underflow", &NumericsProfile::p_underflow, 0x1p-12},
                      Term{"u_partial", &NumericsProfile::u_partial, 0x1p-12},
                      Term{"u_query", &NumericsProfile::u_query, 0x1p-12},
                      Term{"u_product", &NumericsProfile::u_product, 0x1p-12},
                      Term{"u_lse", &NumericsProfile::u_lse, 0x1p-12},
                      Term{"exp_underflow", &NumericsProfile::exp_underflow, 0x1p-12},
                      Term{"product_underflow", &NumericsProfile::product_underflow, 0x1p-12}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace ringlab::verify
