// What cuDNN's frontend says of the graphs of rings. It needs cuDNN's libraries and no device;
// where there are none, or no headers were found, every test is skipped.
#include "optimized/cuda/cudnn/sdpa_plans.h"

#include <gtest/gtest.h>

#include <string>

#include "optimized/cuda/visible_keys.h"
#include "tests/optimized/cuda/block_shape.h"
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

template <class Graph>
std::string refusal_of(const Graph& graph, int capability) {
  try {
    check_graph(graph, capability);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

/// Of both passes.
std::string refusal_of_piece(const cuda::BlockShape& shape, const MaskPiece& piece, DType dtype,
                             int capability) {
  std::string refusal = refusal_of(sdpa_call(shape, piece, 1, dtype).graph, capability);
  for (const bool deterministic : {false, true}) {
    if (!refusal.empty() || !takes_backward(piece, shape.keys)) return refusal;
    refusal =
        refusal_of(sdpa_backward_call(shape, piece, 1, dtype, deterministic).graph, capability);
  }
  return refusal;
}

/// Of every block of the ring: the first refusal.
std::string refusal_of(const cuda::DevicesCase& c, DType dtype, int capability) {
  const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
  const KernelTrial& ring = trial.ring;
  for (int rank = 0; rank < c.ring.ranks; ++rank) {
    for (int owner = 0; owner < c.ring.ranks; ++owner) {
      const Positions& queries = ring.q_layout.positions(rank);
      const Positions& keys = ring.kv_layout.positions(owner);
      const cuda::BlockShape shape = cuda::block_shape(c.ring.shape, queries.size(), keys.size());
      for (const MaskPiece& piece :
           cut_mask(cuda::visible_rows(ring.problem.mask, queries, keys))) {
        const std::string refusal = refusal_of_piece(shape, piece, dtype, capability);
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

TEST_F(SdpaPlans, the_widest_heads_are_good_for_hopper_in_both_passes) {
  const cuda::BlockShape shape{
      .q_heads = 2, .queries = 40, .keys = 70, .head_dim = 256, .v_dim = 256};
  ASSERT_EQ(why_not_cudnn(shape, 1, 90), "");
  const MaskPiece piece{.queries = {0, 40}, .keys = {3, 60}, .rises = true};
  EXPECT_EQ(refusal_of_piece(shape, piece, DType::bf16, 90), "");
  EXPECT_NE(refusal_of_piece(shape, piece, DType::bf16, 80), "");
}

/// The reason for takes_backward(), and that a hidden neighbour is enough.
TEST_F(SdpaPlans, gradients_of_a_single_pair_are_refused_and_with_a_hidden_key_are_not) {
  const cuda::BlockShape shape{.queries = 4, .keys = 4, .head_dim = 64, .v_dim = 64};
  for (const std::int32_t key : {0, 3}) {
    const MaskPiece pair{.queries = {1, 2}, .keys = {key, key + 1}};
    const SdpaBackwardGraph graph = sdpa_backward_call(shape, pair, 1, DType::bf16, false).graph;
    SdpaBackwardGraph alone = graph;
    alone.diagonals = {};
    for (SdpaTensor* tensor : {&alone.k, &alone.v, &alone.dk, &alone.dv}) tensor->sizes[2] = 1;
    for (const int capability : kCapabilities) {
      EXPECT_EQ(refusal_of(graph, capability), "");
      const std::string refusal = refusal_of(alone, capability);
      EXPECT_NE(refusal.find("cuDNN gradients, q (1, 1, 1, 64)"), std::string::npos) << refusal;
    }
  }
}

}  // namespace
}  // namespace ringlab::cudnn
