// Head sizes and lengths around what register tiles, vectors and blocks are made of, on every kind
// of vectors and for every dtype, forward and backward, against the exact reference.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "optimized/cpu/vectors.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "reference/attention/exact.h"
#include "tests/printed.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

constexpr std::int64_t kDims[] = {1, 2, 7, 8, 9, 16, 17, 31, 64, 65, 80, 96, 127, 192, 256};
constexpr std::int64_t kLengths[] = {1, 2, 3, 47, 48, 49, 127, 128, 129, 191, 193, 400};
constexpr const char* kMasks[] = {"full", "causal", "window:40,3", "prefix:50"};
/// Of a (query, key, channel), summed over heads: beyond it the reference takes too long.
constexpr std::int64_t kMostWork = 2'500'000;

std::int64_t work(const Shape& s) {
  return s.q_heads * s.q_tokens * s.kv_tokens * (s.head_dim + s.v_dim);
}

/// The next smaller one of the list.
std::int64_t next_shorter(std::int64_t length) {
  std::int64_t shorter = 1;
  for (const std::int64_t candidate : kLengths) {
    if (candidate < length) shorter = candidate;
  }
  return shorter;
}

/// Case number i: as i grows every dimension meets every length, and every mask every number of
/// ranks; 15, 12, 4 and 3 are stepped through at coprime paces.
verify::Case odd_case(DType dtype, std::int64_t i) {
  const auto pick = [](std::span<const std::int64_t> from, std::int64_t at) {
    return from[static_cast<std::size_t>(at) % from.size()];
  };
  verify::Case c;
  c.seed = static_cast<std::uint64_t>(i + 1);
  c.dtype = dtype;
  c.shape = {.q_heads = i % 3 == 0 ? 2 : 1,
             .kv_heads = 1,
             .q_tokens = pick(kLengths, i),
             .kv_tokens = pick(kLengths, 5 * i + i / 12),
             .head_dim = pick(kDims, i),
             .v_dim = i % 2 == 0 ? pick(kDims, i) : pick(kDims, 7 * i + i / 15)};
  while (work(c.shape) > kMostWork) {
    std::int64_t& longer =
        c.shape.q_tokens > c.shape.kv_tokens ? c.shape.q_tokens : c.shape.kv_tokens;
    longer = next_shorter(longer);
  }
  c.mask = kMasks[(i + i / 15) % 4];
  c.ranks = static_cast<int>(1 + i % 3);
  c.layout = static_cast<LayoutKind>((i / 3) % 3);
  c.tile_queries = cpu::kTileQueries;
  c.tile_keys = cpu::kTileKeys;
  return verify::fitted(c);
}

/// A run's results within their bounds, and how many bounds said anything.
struct Counts {
  int bounds = 0;
  int finite = 0;

  void take_in(const Tensor<double>& allowed) {
    for (const double bound : allowed.values()) {
      ++bounds;
      finite += std::isfinite(bound);
    }
  }
};

class OddSizes : public testing::TestWithParam<DType> {
 protected:
  void TearDown() override { cpu::use_vectors(cpu::available_vectors().front()); }
};

/// The exact answers, and what they are compared with.
struct OddTrial {
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  Tensor<double> dout;
  AttentionInput input;
  ExactForward exact;
  ExactBackward slopes;

  explicit OddTrial(const verify::Case& c)
      : problem(verify::make_problem(c)),
        options(verify::make_options(c)),
        data(verify::make_tensors(c)),
        dout(verify::make_dout(c)),
        input(data.input(problem)) {
    input.dout = dout.view();
    exact = exact_forward(input);
    slopes = exact_backward(input, *input.dout);
  }
  OddTrial(const OddTrial&) = delete;
  OddTrial& operator=(const OddTrial&) = delete;

  /// With the vectors in use.
  Report compare_run(Counts& counts) const {
    const NumericsProfile profile = engine_profile(problem, options);
    const RunResult run = Engine().run(input, options);
    const ForwardTolerance allowed = forward_tolerance(input, exact, profile);
    const BackwardTolerance slack = backward_tolerance(input, *input.dout, slopes, profile);
    for (const auto* bounds : {&allowed.out, &allowed.lse, &slack.dq, &slack.dk, &slack.dv}) {
      counts.take_in(*bounds);
    }
    Report report = compare_forward(run.output, exact, allowed);
    const AttentionGradients& got = *run.gradients;
    report.tensors.push_back(compare("dq", got.dq.view(), slopes.dq.view(), slack.dq.view()));
    report.tensors.push_back(compare("dk", got.dk.view(), slopes.dk.view(), slack.dk.view()));
    report.tensors.push_back(compare("dv", got.dv.view(), slopes.dv.view(), slack.dv.view()));
    return report;
  }
};

TEST_P(OddSizes, give_results_within_their_bounds_on_every_kind_of_vectors) {
  Counts counts;
  for (std::int64_t i = 0; i < repetitions<std::int64_t>(60); ++i) {
    const verify::Case c = odd_case(GetParam(), i);
    const OddTrial trial(c);
    for (const std::string& vectors : cpu::available_vectors()) {
      cpu::use_vectors(vectors);
      const Report report = trial.compare_run(counts);
      ASSERT_TRUE(report.passed()) << vectors << ", " << verify::to_token(c) << "\n"
                                   << report.summary();
    }
  }
  EXPECT_GT(counts.finite, counts.bounds * 9LL / 10) << "a tolerance without bound is no test";
}

/// NaN is no number: a query of it sees keys all the same, and may not look as if it saw none.
TEST_P(OddSizes, a_query_that_is_nan_has_nan_for_its_answer) {
  for (const std::string& vectors : cpu::available_vectors()) {
    cpu::use_vectors(vectors);
    for (std::int64_t i = 0; i < 24; ++i) {
      verify::Case c = odd_case(GetParam(), i);
      c.mask = "full";
      const Problem problem = verify::make_problem(c);
      AttentionTensors data = verify::make_tensors(c);
      const std::int64_t row = i % c.shape.q_tokens;
      data.q(0, 0, row, i % c.shape.head_dim) = std::nan("");
      const RunResult run = Engine().run(data.input(problem), verify::make_options(c));
      const std::string where = vectors + ", " + verify::to_token(c);
      for (std::int64_t at = 0; at < c.shape.q_tokens; ++at) {
        ASSERT_EQ(std::isnan(run.output.out(0, 0, at, 0)), at == row) << where << ", row " << at;
        ASSERT_EQ(std::isnan(run.output.lse(0, 0, at, 0)), at == row) << where << ", row " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, OddSizes,
                         testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16),
                         [](const auto& dtype) {
                           return std::string(dtype_info(dtype.param).name);
                         });

}  // namespace
}  // namespace ringlab::ring
