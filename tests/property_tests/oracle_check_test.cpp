#include "property_tests/oracle_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "property_tests/oracles/quad_attention.h"

namespace ringlab::verify {
namespace {

using quad::Quad;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// As many as 113 bits tell: its bound is nothing beside the grid.
void add_all(GridDigest& digest, const std::vector<Quad>& values) {
  for (const Quad& value : values) digest.add(static_cast<double>(value), 1e-15);
}

TEST(OracleCheck, fingerprint_is_that_of_113_bit_arithmetic) {
  GridDigest digest;
  for (const Case& c : oracle_problems()) {
    digest.add_problem(c);
    const AttentionTensors tensors = make_tensors(c);
    const Problem problem = make_problem(c);
    const AttentionInput input = tensors.input(problem);
    const quad::Forward<Quad> forward = quad::forward<Quad>(input);
    add_all(digest, forward.out);
    for (std::size_t i = 0; i < forward.lse.size(); ++i) {
      digest.add(forward.empty[i] ? -kInfinity : static_cast<double>(forward.lse[i]), 1e-15);
    }
    const Tensor<double> dout = make_dout(c);
    const quad::Backward<Quad> backward = quad::backward<Quad>(input, dout.view());
    add_all(digest, backward.dq);
    add_all(digest, backward.dk);
    add_all(digest, backward.dv);
  }
  const OracleCheck check = check_oracle();
  EXPECT_EQ(digest.finish(), check.fingerprint);
  EXPECT_EQ(digest.numbers(), check.numbers);
  EXPECT_EQ(check.fingerprint, check.expected);
  EXPECT_EQ(check.undecided, 0);
  EXPECT_TRUE(check.agrees());
  EXPECT_GE(check.problems, 10);
  EXPECT_GE(check.numbers, 1000);
}

TEST(OracleCheck, notices_a_number_off_by_one_point_of_the_grid) {
  const auto digest_of = [](double value) {
    GridDigest digest;
    digest.add(value, 0);
    return digest.finish();
  };
  EXPECT_EQ(digest_of(1.0), digest_of(1.0 + 0x1p-30));
  EXPECT_NE(digest_of(1.0), digest_of(1.0 + 0x1p-20));
  EXPECT_NE(digest_of(-kInfinity), digest_of(kInfinity));
}

TEST(OracleCheck, counts_what_its_bound_leaves_undecided) {
  GridDigest digest;
  digest.add(0.25, 1e-9);
  EXPECT_EQ(digest.undecided(), 0);
  digest.add(0.25, 1e-5);
  EXPECT_EQ(digest.undecided(), 1);
  digest.add(std::nan(""), 0);
  EXPECT_EQ(digest.undecided(), 2);
}

}  // namespace
}  // namespace ringlab::verify
