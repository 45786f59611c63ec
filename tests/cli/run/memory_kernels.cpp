// In place of optimized/ring/streams/device_kernels.cpp: attention by plain loops on devices that are
// memory, for a rank that holds all keys. With it the whole program runs where there is no GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/ring/streams/device_kernels.h"
#include "reference/core/error.h"
#include "reference/core/small_float.h"
#include "tests/optimized/ring/kernels_on_streams.h"

namespace ringlab::ring {
namespace {

using cuda::BlockShape;
using cuda::Stream;

constexpr std::int32_t kTileQueries = 16;

std::int64_t kv_head_of(const BlockShape& s, std::int64_t head) {
  return head / s.q_heads * s.kv_heads + head % s.q_heads / (s.q_heads / s.kv_heads);
}

template <class Element>
float dot(const Element* a, const Element* b, std::int32_t count) {
  float sum = 0;
  for (std::int32_t c = 0; c < count; ++c)
    sum += static_cast<float>(a[c]) * static_cast<float>(b[c]);
  return sum;
}

/// `visit(row of q, first row of its keys, range of keys)` for every batch, head and query.
template <class Call, class Visit>
void for_each_row(const Call& call, Visit visit) {
  const BlockShape& s = call.shape;
  for (std::int64_t head = 0; head < std::int64_t{s.batch} * s.q_heads; ++head) {
    for (std::int32_t query = 0; query < s.queries; ++query) {
      visit(head * s.queries + query, kv_head_of(s, head) * s.keys, call.mask.rows[query]);
    }
  }
}

template <class Element>
void forward_row(const cuda::ForwardCall<Element>& call, std::int64_t row, std::int64_t first,
                 cuda::KeyRange seen) {
  const std::int32_t width = call.shape.head_dim, v_width = call.shape.v_dim;
  std::vector<float> scores;
  float most = -std::numeric_limits<float>::infinity(), sum = 0;
  for (std::int32_t key = seen.first; key < seen.last; ++key) {
    scores.push_back(call.scale * dot(call.q + row * width, call.k + (first + key) * width, width));
    most = std::max(most, scores.back());
  }
  std::vector<float> out(static_cast<std::size_t>(v_width));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float weight = std::exp2(scores[i] - most);
    sum += weight;
    const Element* const v = call.v + (first + seen.first + static_cast<std::int64_t>(i)) * v_width;
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += weight * static_cast<float>(v[c]);
  }
  for (std::int32_t c = 0; c < v_width; ++c) {
    const float value = scores.empty() ? 0 : out[static_cast<std::size_t>(c)] / sum;
    call.out[row * v_width + c] = static_cast<Element>(value);
  }
  call.lse[row] = scores.empty() ? most : std::numbers::ln2_v<float> * (most + std::log2(sum));
}

template <class Element>
void forward(const cuda::ForwardCall<Element>& call, Stream) {
  if (!call.begins || !call.finishes) {
    throw_usage_error({.where = "memory kernels", .expected = "one rank", .actual = "several"});
  }
  for_each_row(call, [&](auto row, auto first, auto seen) { forward_row(call, row, first, seen); });
}

template <class Element>
void backward(const cuda::BackwardCall<Element>& call, Stream) {
  const std::int32_t width = call.shape.head_dim, v_width = call.shape.v_dim;
  for_each_row(call, [&](std::int64_t row, std::int64_t first, cuda::KeyRange seen) {
    for (std::int64_t key = first + seen.first; key < first + seen.last; ++key) {
      const Element *q = call.q + row * width, *k = call.k + key * width;
      const Element *v = call.v + key * v_width, *dout = call.dout + row * v_width;
      const float weight =
          std::exp2(call.scale * dot(q, k, width) - std::numbers::log2e_v<float> * call.lse[row]);
      const float slope = weight * (dot(dout, v, v_width) - call.delta[row]);
      for (std::int32_t c = 0; c < v_width; ++c) {
        call.dv[key * v_width + c] += weight * static_cast<float>(dout[c]);
      }
      for (std::int32_t c = 0; c < width; ++c) {
        call.dq[row * width + c] += slope * static_cast<float>(k[c]);
        call.dk[key * width + c] += slope * static_cast<float>(q[c]);
      }
    }
  });
}

template <class Element>
void finish_rows(const cuda::FinishRows<Element>& call, Stream) {  // of a rank that saw nothing
  std::fill_n(call.out, call.rows * call.channels, Element(0.0f));
  std::fill_n(call.lse, call.rows, -std::numeric_limits<float>::infinity());
}

template <class Element>
void delta_rows(const cuda::DeltaRows<Element>& call, Stream) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    call.delta[row] =
        dot(call.out + row * call.channels, call.dout + row * call.channels, call.channels);
  }
}

template <class Element>
void scale_to(const cuda::ScaleTo<Element>& call, Stream) {
  for (std::int64_t i = 0; i < call.count; ++i) {
    call.to[i] = static_cast<Element>(call.scale * call.from[i]);
  }
}

}  // namespace

std::string KernelChoice::text() const { return "plain loops on memory"; }

KernelChoice choose_kernels_on(int device, const Problem&, const RunOptions&) {
  return {.why_not_hopper = "memory", .devices = cuda::device_facts(device).name};
}
KernelChoice choose_kernels(const Problem& problem, const RunOptions& options, int) {
  return choose_kernels_on(0, problem, options);
}

template <class Element>
DeviceKernels<Element> device_kernels(ForwardKernel, const Shape&, const cuda::ForwardGrid&) {
  return on_streams<Element>({.why_not = [](const BlockShape&) { return std::string(); },
                              .forward_tile_queries = kTileQueries,
                              .backward_tile_queries = kTileQueries,
                              .forward = forward<Element>,
                              .backward = backward<Element>,
                              .clear_states = [](const cuda::ClearStates&, Stream) {},
                              .finish_rows = finish_rows<Element>,
                              .delta_rows = delta_rows<Element>,
                              .scale_to = scale_to<Element>});
}
template DeviceKernels<Half> device_kernels(ForwardKernel, const Shape&, const cuda::ForwardGrid&);
template DeviceKernels<BFloat16> device_kernels(ForwardKernel, const Shape&,
                                                const cuda::ForwardGrid&);

}  // namespace ringlab::ring
