#include "optimized/cuda/cudnn/sdpa_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "reference/core/error.h"
#include "tests/optimized/cuda/cudnn/memory_sdpa.h"

namespace ringlab::cudnn {
namespace {

constexpr cuda::BlockShape kShape{.batch = 2,
                                  .q_heads = 6,
                                  .kv_heads = 3,
                                  .queries = 40,
                                  .keys = 50,
                                  .head_dim = 16,
                                  .v_dim = 24};
constexpr int kHopper = 90, kAmpere = 80;

/// Where an element of a dense (batch, heads, rows, channels) tensor lies.
std::int64_t place(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c,
                   std::int64_t heads, std::int64_t rows, std::int64_t channels) {
  return ((b * heads + h) * rows + row) * channels + c;
}
std::int64_t place(const SdpaTensor& tensor, const std::array<std::int64_t, 4>& at) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * tensor.strides[i];
  return sum;
}

/// Of queries 7 … 18 and keys 11 … 29: what both passes read.
template <class Call>
void expect_inputs_of_the_piece(const Call& call) {
  const auto& graph = call.graph;
  EXPECT_EQ(graph.q.sizes, (std::array<std::int64_t, 4>{2, 6, 12, 16}));
  EXPECT_EQ(graph.k.sizes, (std::array<std::int64_t, 4>{2, 3, 19, 16}));
  EXPECT_EQ(graph.v.sizes, (std::array<std::int64_t, 4>{2, 3, 19, 24}));
  EXPECT_EQ(graph.out.sizes, (std::array<std::int64_t, 4>{2, 6, 12, 24}));
  EXPECT_EQ(graph.lse.sizes, (std::array<std::int64_t, 4>{2, 6, 12, 1}));
}
template <class Call>
void expect_inputs_of_the_piece_at(const Call& call, const std::array<std::int64_t, 4>& at) {
  const auto& graph = call.graph;
  const auto [b, h, row, c] = at;
  EXPECT_EQ(call.q_offset + place(graph.q, at), place(b, h, 7 + row, c, 6, 40, 16));
  EXPECT_EQ(call.k_offset + place(graph.k, at), place(b, h, 11 + row, c, 3, 50, 16));
  EXPECT_EQ(call.v_offset + place(graph.v, at), place(b, h, 11 + row, c, 3, 50, 24));
  EXPECT_EQ(place(graph.lse, {b, h, row, 0}), place(b, h, row, 0, 6, 12, 1));
}

TEST(SdpaGraph, finds_every_element_of_a_piece_in_the_whole_tensors) {
  const MaskPiece piece{.queries = {7, 19}, .keys = {11, 30}};
  const SdpaCall call = sdpa_call(kShape, piece, 1, DType::bf16);
  const SdpaGraph& graph = call.graph;
  expect_inputs_of_the_piece(call);
  for (const std::int64_t b : {0, 1}) {
    for (const std::int64_t h : {0, 1, 2}) {
      for (const std::int64_t row : {0, 5, 11}) {
        for (const std::int64_t c : {0, 9, 15}) {
          expect_inputs_of_the_piece_at(call, {b, h, row, c});
          EXPECT_EQ(place(graph.out, {b, h, row, c}), place(b, h, row, c, 6, 12, 24));
        }
      }
    }
  }
}

/// cuDNN moves 16 bytes at once, and says nothing where it must not.
TEST(SdpaGraph, keeps_every_row_aligned_to_16_bytes) {
  for (const std::int32_t head_dim : {8, 24, 128}) {
    cuda::BlockShape shape = kShape;
    shape.head_dim = head_dim;
    const SdpaCall call = sdpa_call(shape, {.queries = {3, 9}, .keys = {1, 44}}, 1, DType::f16);
    for (const SdpaTensor* tensor :
         {&call.graph.q, &call.graph.k, &call.graph.v, &call.graph.out}) {
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(tensor->strides[i] % 8, 0);
      EXPECT_EQ(tensor->strides[3], 1);
    }
    for (const std::int64_t offset : {call.q_offset, call.k_offset, call.v_offset}) {
      EXPECT_EQ(offset % 8, 0);
    }
  }
}

TEST(SdpaGraph, has_diagonals_that_show_what_the_piece_shows) {
  for (const bool rises : {false, true}) {
    for (const bool leaves : {false, true}) {
      for (std::int32_t queries = 1; queries <= 6; ++queries) {
        for (std::int32_t keys = rises || leaves ? queries : 1; keys <= 9; ++keys) {
          const MaskPiece piece{
              .queries = {2, 2 + queries}, .keys = {5, 5 + keys}, .rises = rises, .leaves = leaves};
          const SdpaGraph graph = sdpa_call(kShape, piece, 1, DType::bf16).graph;
          for (std::int32_t i = 0; i < queries; ++i) {
            for (std::int32_t j = 0; j < keys; ++j) {
              const bool hidden = (rises && j > i + keys - queries) || (leaves && j < i);
              ASSERT_EQ(shows(graph, i, j), !hidden)
                  << queries << " queries, " << keys << " keys, " << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

TEST(SdpaGraph, names_the_corner_only_where_it_matters) {
  const auto diagonals = [](const MaskPiece& piece) {
    return sdpa_call(kShape, piece, 1, DType::bf16).graph.diagonals;
  };
  EXPECT_EQ(diagonals({.queries = {0, 4}, .keys = {0, 9}}), SdpaDiagonals{});
  EXPECT_EQ(diagonals({.queries = {0, 4}, .keys = {0, 4}, .rises = true}).corner, Corner::top_left);
  EXPECT_EQ(diagonals({.queries = {0, 4}, .keys = {0, 9}, .rises = true}).corner,
            Corner::bottom_right);
}

TEST(SdpaGraph, has_the_scale_of_the_scores_themselves) {
  const double scale = 0.0883883476;
  const auto in_base_2 = static_cast<float>(scale * std::numbers::log2e);
  const MaskPiece piece{.queries = {0, 40}, .keys = {0, 50}};
  const float got = sdpa_call(kShape, piece, in_base_2, DType::bf16).graph.scale;
  EXPECT_NEAR(got, scale, 2 * 0x1p-24 * scale);
}

TEST(SdpaGraph, is_the_key_of_plans_and_does_not_know_where_a_piece_lies) {
  const auto graph = [](std::int32_t first, std::int32_t count, float scale = 1) {
    return sdpa_call(kShape, {.queries = {first, first + count}, .keys = {0, 50}}, scale,
                     DType::bf16)
        .graph;
  };
  EXPECT_EQ(graph(0, 8), graph(16, 8));
  EXPECT_NE(graph(0, 8), graph(0, 16));
  EXPECT_NE(graph(0, 8), graph(0, 8, 2));
  EXPECT_NE((graph(0, 8) < graph(0, 16)), (graph(0, 16) < graph(0, 8)));
}

/// What the backward pass reads lies where the forward pass has it; what it writes is dense.
TEST(SdpaBackwardGraph, finds_every_element_of_a_piece_in_the_whole_tensors) {
  const MaskPiece piece{.queries = {7, 19}, .keys = {11, 30}};
  const SdpaBackwardCall call = sdpa_backward_call(kShape, piece, 1, DType::bf16, true);
  const SdpaBackwardGraph& graph = call.graph;
  EXPECT_EQ(call.keys, piece.keys);
  expect_inputs_of_the_piece(call);
  EXPECT_EQ(graph.dout, graph.out);
  EXPECT_EQ(graph.dq.sizes, graph.q.sizes);
  EXPECT_EQ(graph.dk.sizes, graph.k.sizes);
  EXPECT_EQ(graph.dv.sizes, graph.v.sizes);
  for (const std::int64_t b : {0, 1}) {
    for (const std::int64_t h : {0, 1, 2}) {
      for (const std::int64_t row : {0, 5, 11}) {
        for (const std::int64_t c : {0, 9, 15}) {
          expect_inputs_of_the_piece_at(call, {b, h, row, c});
          EXPECT_EQ(call.out_offset + place(graph.out, {b, h, row, c}),
                    place(b, h, 7 + row, c, 6, 40, 24));
          EXPECT_EQ(place(graph.dq, {b, h, row, c}), place(b, h, row, c, 6, 12, 16));
          EXPECT_EQ(place(graph.dk, {b, h, row, c}), place(b, h, row, c, 3, 19, 16));
          EXPECT_EQ(place(graph.dv, {b, h, row, c}), place(b, h, row, c, 3, 19, 24));
        }
      }
    }
  }
}

TEST(SdpaBackwardGraph, has_the_diagonals_and_the_scale_of_the_forward_pass) {
  for (const bool rises : {false, true}) {
    for (const bool leaves : {false, true}) {
      const MaskPiece piece{.queries = {2, 8}, .keys = {5, 14}, .rises = rises, .leaves = leaves};
      const SdpaGraph forward = sdpa_call(kShape, piece, 0.3f, DType::f16).graph;
      const SdpaBackwardGraph backward =
          sdpa_backward_call(kShape, piece, 0.3f, DType::f16, false).graph;
      EXPECT_EQ(backward.diagonals, forward.diagonals);
      EXPECT_EQ(backward.scale, forward.scale);
      EXPECT_EQ(backward.dtype, DType::f16);
    }
  }
}

/// cuDNN takes no single pair: a neighbour that is hidden comes with the key.
TEST(SdpaBackwardGraph, of_one_query_and_one_key_has_another_key_that_is_hidden) {
  for (std::int32_t key = 0; key < kShape.keys; ++key) {
    const MaskPiece piece{.queries = {3, 4}, .keys = {key, key + 1}};
    ASSERT_TRUE(takes_backward(piece, kShape.keys));
    const SdpaBackwardCall call = sdpa_backward_call(kShape, piece, 1, DType::bf16, false);
    ASSERT_EQ(call.graph.k.sizes[2], 2);
    ASSERT_EQ(call.graph.dk.sizes[2], 2);
    ASSERT_GE(call.keys.first, 0);
    ASSERT_LE(call.keys.last, kShape.keys);
    for (const std::int32_t j : {0, 1}) {
      ASSERT_EQ(shows(call.graph, 0, j), call.keys.first + j == key) << key;
    }
    EXPECT_EQ(call.k_offset, call.keys.first * kShape.head_dim);
    EXPECT_EQ(call.v_offset, call.keys.first * kShape.v_dim);
  }
}

TEST(SdpaBackwardGraph, is_not_asked_for_one_query_and_the_only_key) {
  const MaskPiece pair{.queries = {3, 4}, .keys = {0, 1}};
  EXPECT_FALSE(takes_backward(pair, 1));
  EXPECT_THROW(check_backward_piece(pair, 1), Error);
  EXPECT_NO_THROW(check_backward_piece(pair, 2));
  EXPECT_TRUE(takes_backward({.queries = {3, 5}, .keys = {0, 1}}, 1));
}

TEST(SdpaBackwardGraph, of_the_whole_block_holds_all_queries_and_all_keys) {
  EXPECT_TRUE(holds_all(kShape, {.queries = {0, 40}, .keys = {0, 50}}));
  EXPECT_FALSE(holds_all(kShape, {.queries = {0, 40}, .keys = {0, 49}}));
  EXPECT_FALSE(holds_all(kShape, {.queries = {0, 40}, .keys = {1, 50}}));
  EXPECT_FALSE(holds_all(kShape, {.queries = {1, 40}, .keys = {0, 50}}));
}

TEST(SdpaGraph, tells_pieces_with_all_queries_from_others) {
  EXPECT_TRUE(holds_all_queries(kShape, {.queries = {0, 40}, .keys = {3, 9}}));
  EXPECT_FALSE(holds_all_queries(kShape, {.queries = {0, 39}, .keys = {0, 50}}));
  EXPECT_FALSE(holds_all_queries(kShape, {.queries = {1, 40}, .keys = {0, 50}}));
}

TEST(WhyNotCudnn, names_what_is_wrong_with_a_block) {
  const auto with = [](auto change) {
    cuda::BlockShape shape = kShape;
    change(shape);
    return shape;
  };
  EXPECT_EQ(why_not_cudnn(kShape, 1, kHopper), "");
  EXPECT_EQ(why_not_cudnn(kShape, 1, kAmpere), "");
  EXPECT_EQ(why_not_cudnn(kShape, 1, 75), "compute capability 7.5");
  for (const float scale : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_NE(why_not_cudnn(kShape, scale, kHopper), "");
  }
  const auto odd = with([](cuda::BlockShape& s) { s.head_dim = 20; });
  EXPECT_EQ(why_not_cudnn(odd, 1, kHopper), "head_dim = 20");
  const auto uneven = with([](cuda::BlockShape& s) { s.q_heads = 4; });
  EXPECT_EQ(why_not_cudnn(uneven, 1, kHopper), "4 query heads for 3 K/V heads");
}

TEST(WhyNotCudnn, takes_more_than_128_channels_on_hopper_only_and_as_many_of_v) {
  const auto reason = [](std::int32_t head_dim, std::int32_t v_dim, int capability) {
    cuda::BlockShape shape = kShape;
    shape.head_dim = head_dim;
    shape.v_dim = v_dim;
    return why_not_cudnn(shape, 1, capability);
  };
  EXPECT_EQ(reason(128, 64, kAmpere), "");
  EXPECT_EQ(reason(256, 256, kHopper), "");
  EXPECT_EQ(reason(256, 256, kAmpere), "head_dim = 256, v_dim = 256 on compute capability 8.0");
  EXPECT_EQ(reason(192, 128, kHopper), "head_dim = 192, v_dim = 128 on compute capability 9.0");
  EXPECT_EQ(reason(264, 264, kHopper), "head_dim = 264");
}

}  // namespace
}  // namespace ringlab::cudnn
