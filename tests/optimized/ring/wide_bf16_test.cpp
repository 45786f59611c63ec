// bf16 with as many channels and keys as real problems have, on every kind of vectors, against the
// exact reference; the random cases of engine_test.cpp are smaller.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "optimized/cpu/vectors.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "reference/attention/exact.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

verify::Case wide_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const std::int64_t dims[] = {1, 2, 16, 17, 64, 80, 96, 128, 192, 256};
  const char* masks[] = {"full",      "causal", "window:30,5", "causal+window:70,0",
                         "prefix:60", "bits:7"};
  verify::Case c;
  c.seed = seed;
  c.dtype = DType::bf16;
  c.family = static_cast<verify::Family>(below(verify::kFamilies));
  c.mask = masks[below(6)];
  c.shape = {.batch = 1,
             .q_heads = 2,
             .kv_heads = 1 + below(2),
             .q_tokens = 1 + below(130),
             .kv_tokens = 1 + below(300),
             .head_dim = dims[below(10)],
             .v_dim = dims[below(10)]};
  c.ranks = static_cast<int>(1 + below(3));
  c.layout = static_cast<LayoutKind>(below(3));
  c.tile_queries = 1 + below(200);
  c.tile_keys = 1 + below(140);
  return verify::fitted(c);
}

class WideBf16 : public testing::Test {
 protected:
  void TearDown() override { cpu::use_vectors(cpu::available_vectors().front()); }
};

TEST_F(WideBf16, equals_the_exact_reference_on_every_kind_of_vectors) {
  int promised = 0, runs = 0;
  for (unsigned seed = 0; seed < repetitions<unsigned>(120); ++seed) {
    const verify::Case c = wide_case(seed);
    const Problem problem = verify::make_problem(c);
    const RunOptions options = verify::make_options(c);
    const AttentionTensors data = verify::make_tensors(c);
    const AttentionInput input = data.input(problem);
    const ExactForward exact = exact_forward(input);
    for (const std::string& vectors : cpu::available_vectors()) {
      cpu::use_vectors(vectors);
      const RunResult run = Engine().run(input, options);
      const ForwardTolerance allowed =
          forward_tolerance(input, exact, engine_profile(problem, options));
      const Report report = compare_forward(run.output, exact, allowed);
      ASSERT_TRUE(report.passed())
          << vectors << ", " << verify::to_token(c) << ": " << verify::describe(c) << "\n"
          << report.summary();
      ++runs;
      promised +=
          std::ranges::all_of(allowed.lse.values(), [](double x) { return std::isfinite(x); });
    }
  }
  EXPECT_GT(promised, runs * 3 / 4) << "a tolerance without bound is no test";
}

}  // namespace
}  // namespace ringlab::ring
