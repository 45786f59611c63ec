// What cuDNN's frontend says of the graphs of rings. It needs cuDNN's libraries and no device;
// where there are none, or no headers were found, every test is skipped.
#include "optimized/cuda/cudnn/sdpa_plans.h"

#include <gtest/gtest.h>

#include <string>

#include "optimized/cuda/visible_keys.h"
#include "tests/optimized/cuda/cudnn/cudnn_trial.h"

namespace ringlab::cudnn {
namespace {

constexpr int kCapabilities[] = {80, 90, 100};

class SdpaPlans : public testing::Test {
 protected:
  void SetUp() override {
    try {
      require_cudnn();
    } catch (const Error& error) {
      GTEST_SKIP() << "no cuDNN: " << error.what();
    }
  }
};

std::string refusal_of(const SdpaGraph& graph, int capability) {
  try {
    check_graph(graph, capability);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

/// Of every block of the ring: the first refusal.
std::string refusal_of(const cuda::DevicesCase& c, DType dtype, int capability) {
  const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
  const cuda::RingTrial& ring = trial.ring;
  for (int rank = 0; rank < c.ring.ranks; ++rank) {
    for (int owner = 0; owner < c.ring.ranks; ++owner) {
      const Positions& queries = ring.q_layout.positions(rank);
      const Positions& keys = ring.kv_layout.positions(owner);
      const cuda::BlockShape shape = cuda::block_shape(c.ring.shape, queries.size(), keys.size());
      for (const MaskPiece& piece :
           cut_mask(cuda::visible_rows(ring.problem.mask, queries, keys))) {
        const std::string refusal = refusal_of(sdpa_call(shape, piece, 1, dtype).graph, capability);
        if (!refusal.empty()) return c.text() + ": " + refusal;
      }
    }
  }
  return "";
}

TEST_F(SdpaPlans, graphs_of_random_rings_are_good_for_every_device) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    for (const int capability : kCapabilities) {
      const DType dtype = seed % 2 ? DType::f16 : DType::bf16;
      ASSERT_EQ(refusal_of(random_case(seed, 128), dtype, capability), "");
    }
  }
}

TEST_F(SdpaPlans, a_graph_that_makes_no_sense_is_refused_by_name) {
  const cuda::BlockShape shape{
      .q_heads = 4, .kv_heads = 2, .queries = 64, .keys = 32, .head_dim = 64, .v_dim = 64};
  const SdpaGraph good =
      sdpa_call(shape, {.queries = {0, 64}, .keys = {0, 32}}, 1, DType::bf16).graph;
  EXPECT_EQ(refusal_of(good, 90), "");
  SdpaGraph wrong = good;
  wrong.diagonals = {.corner = Corner::bottom_right, .left_bound = {}, .right_bound = 0};
  const std::string refusal = refusal_of(wrong, 90);
  EXPECT_NE(refusal.find("q (1, 4, 64, 64), k (1, 2, 32, 64)"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("ottom right"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace ringlab::cudnn
