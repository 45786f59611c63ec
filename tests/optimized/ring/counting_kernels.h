// Kernels on devices that are plain memory, what they make of a problem, and problems for them.
//
// The kernels only add up what their queries see, so results are small integers: exact in every
// type and order, and wrong as soon as a chunk, mask, slot, sum or state is not the right one.
#pragma once

#include <gtest/gtest.h>

#include "optimized/ring/engine.h"
#include "optimized/ring/streams/cuda_streams.h"
#include "property_tests/generators/draws.h"
#include "reference/core/small_float.h"
#include "tests/optimized/ring/kernels_on_streams.h"
#include "tests/property_tests/programs/stream_trial.h"

namespace ringlab::ring {

using cuda::Stream;
using verify::Draws;

inline constexpr std::int32_t kTileQueries = 4;

/// Calls `visit(query row, key row)` over the batch and heads for all that a call's queries see,
/// and checks that the tiles say so too.
template <class Call, class Visit>
void for_each_pair(const Call& call, Visit visit) {
  const cuda::BlockShape& s = call.shape;
  for (std::int64_t head = 0; head < std::int64_t{s.batch} * s.q_heads; ++head) {
    const std::int64_t batch = head / s.q_heads;
    const std::int64_t kv_head = batch * s.kv_heads + head % s.q_heads / (s.q_heads / s.kv_heads);
    for (std::int32_t query = 0; query < s.queries; ++query) {
      const cuda::KeyRange seen = call.mask.rows[query];
      const cuda::KeyRange any = call.mask.tiles[query / kTileQueries].any;
      for (std::int32_t key = seen.first; key < seen.last; ++key) {
        ASSERT_TRUE(key >= any.first && key < any.last && key < s.keys);
        visit(head * s.queries + query, kv_head * s.keys + key);
      }
    }
  }
}

/// out: Σ v; lse: how many were seen.
template <class Element>
void count_forward(const cuda::ForwardCall<Element>& call, Stream) {
  const std::int32_t width = call.shape.v_dim;
  const std::int64_t rows =
      std::int64_t{call.shape.batch} * call.shape.q_heads * call.shape.queries;
  if (call.begins) {
    std::fill_n(call.running.states, rows, SoftmaxState<float>{0, 0});
    std::fill_n(call.running.accs, rows * width, 0.0f);
  }
  for_each_pair(call, [&](std::int64_t query, std::int64_t key) {
    call.running.states[query].row_sum += 1;
    for (std::int32_t c = 0; c < width; ++c) {
      call.running.accs[query * width + c] += static_cast<float>(call.v[key * width + c]);
    }
  });
  if (!call.finishes) return;
  for (std::int64_t i = 0; i < rows * width; ++i) {
    call.out[i] = static_cast<Element>(call.running.accs[i]);
  }
  for (std::int64_t i = 0; i < rows; ++i) call.lse[i] = call.running.states[i].row_sum;
}

/// dq: Σ k; dk: Σ q lse, times the key's first channel; dv: Σ dout delta, times that of its value,
/// or the sums of different chunks could not be told apart.
template <class Element>
void count_backward(const cuda::BackwardCall<Element>& call, Stream) {
  const std::int32_t width = call.shape.head_dim, v_width = call.shape.v_dim;
  for_each_pair(call, [&](std::int64_t query, std::int64_t key) {
    const float for_key = call.lse[query] * static_cast<float>(call.k[key * width]);
    const float for_value = call.delta[query] * static_cast<float>(call.v[key * v_width]);
    for (std::int32_t c = 0; c < width; ++c) {
      call.dq[query * width + c] += static_cast<float>(call.k[key * width + c]);
      call.dk[key * width + c] += static_cast<float>(call.q[query * width + c]) * for_key;
    }
    for (std::int32_t c = 0; c < v_width; ++c) {
      call.dv[key * v_width + c] += static_cast<float>(call.dout[query * v_width + c]) * for_value;
    }
  });
}

template <class Element>
DeviceKernels<Element> counting_kernels() {
  return on_streams<Element>(
      {.why_not = [](const cuda::BlockShape&) { return std::string(); },
       .forward_tile_queries = kTileQueries,
       .backward_tile_queries = kTileQueries,
       .forward = count_forward<Element>,
       .backward = count_backward<Element>,
       .clear_states =
           [](const cuda::ClearStates& call, Stream) {
             std::fill_n(call.running.states, call.rows, SoftmaxState<float>{0, 0});
             std::fill_n(call.running.accs, call.rows * call.channels, 0.0f);
           },
       .finish_rows =
           [](const cuda::FinishRows<Element>& call, Stream) {
             std::fill_n(call.out, call.rows * call.channels, Element(0.0f));
             std::fill_n(call.lse, call.rows, 0.0f);
           },
       .delta_rows =
           [](const cuda::DeltaRows<Element>& call, Stream) {
             for (std::int64_t row = 0; row < call.rows; ++row) {
               call.delta[row] = static_cast<float>(call.dout[row * call.channels]);
             }
           },
       .scale_to =
           [](const cuda::ScaleTo<Element>& call, Stream) {
             for (std::int64_t i = 0; i < call.count; ++i) {
               call.to[i] = static_cast<Element>(call.scale * call.from[i]);
             }
           }});
}

/// What those kernels make of the whole, pair by pair, as bits per rank.
template <class Element>
RankResult<Element> expected(const Trial& trial, const RankTokens& tokens) {
  const Shape& s = trial.problem.shape;
  const auto zeros = [](Extents e) { return Tensor<double>(e); };
  Tensor<double> out = zeros(s.out()), lse = zeros(s.lse()), dq = zeros(s.q()), dk = zeros(s.k()),
                 dv = zeros(s.v());
  const auto visit_all = [&](auto visit) {
    for_each_index(s.lse(), [&](auto b, auto h, auto i, auto) {
      for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
        if (trial.problem.mask.allows(i, j)) visit(b, h, i, h / (s.q_heads / s.kv_heads), j);
      }
    });
  };
  const AttentionTensors& data = trial.data;
  visit_all([&](auto b, auto h, auto i, auto g, auto j) {
    lse(b, h, i, 0) += 1;
    for (std::int64_t c = 0; c < s.v_dim; ++c) out(b, h, i, c) += data.v(b, g, j, c);
  });
  visit_all([&](auto b, auto h, auto i, auto g, auto j) {
    for (std::int64_t c = 0; c < s.head_dim; ++c) {
      dq(b, h, i, c) += trial.problem.scale * data.k(b, g, j, c);
      dk(b, g, j, c) +=
          trial.problem.scale * data.q(b, h, i, c) * lse(b, h, i, 0) * data.k(b, g, j, 0);
    }
    for (std::int64_t c = 0; c < s.v_dim; ++c) {
      dv(b, g, j, c) += trial.dout(b, h, i, c) * trial.dout(b, h, i, 0) * data.v(b, g, j, 0);
    }
  });
  RankResult<Element> due{.out = shard_of<Element>(out.view(), tokens.queries),
                          .lse = shard_of<float>(lse.view(), tokens.queries)};
  if (!trial.gradients) return due;
  due.gradients = RankGradients<Element>{shard_of<Element>(dq.view(), tokens.queries),
                                         shard_of<Element>(dk.view(), tokens.keys),
                                         shard_of<Element>(dv.view(), tokens.keys)};
  return due;
}

template <class Element>
Bits expected_bits(const Trial& trial) {
  const Layout queries =
      make_layout(trial.options, trial.problem.shape.q_tokens, trial.options.q_layout);
  const Layout keys =
      make_layout(trial.options, trial.problem.shape.kv_tokens, trial.options.kv_layout);
  return bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
    for (int rank = 0; rank < trial.options.ranks; ++rank) {
      const RankTokens tokens{rank, queries.positions(rank), keys.positions(rank)};
      ends.sink(tokens, expected<Element>(trial, tokens));
    }
  });
}

/// -1, 0 and 1, and a scale that is a power of two.
inline void make_small(Trial& trial, Draws& draws) {
  trial.problem.scale = 0.5;
  trial.problem.modifiers = {};
  for (Tensor<double>* tensor : {&trial.data.q, &trial.data.k, &trial.data.v, &trial.dout}) {
    for (double& value : tensor->values()) value = static_cast<double>(draws.between(-1, 1));
  }
}

inline Trial counting_trial(Draws& draws, DType dtype) {
  for (;;) {
    verify::Case c = verify::random_case(draws);
    c.dtype = dtype;
    c.modifiers = {};
    c.shape.q_tokens = std::min<std::int64_t>(c.shape.q_tokens, 15);
    c.shape.kv_tokens = std::min<std::int64_t>(c.shape.kv_tokens, 15);
    Trial trial = make_trial(verify::fitted(c));
    if (trial.problem.mask.has_bits()) continue;
    make_small(trial, draws);
    trial.gradients = draws.chance(75);
    return trial;
  }
}

}  // namespace ringlab::ring
