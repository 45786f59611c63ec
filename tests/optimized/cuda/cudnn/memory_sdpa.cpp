#include "tests/optimized/cuda/cudnn/memory_sdpa.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "reference/core/small_float.h"

namespace ringlab::cudnn {
namespace {

constexpr std::int64_t kWorkspace = 1000;  // bytes; no multiple of what is aligned
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::int64_t at(const SdpaTensor& tensor, std::int64_t b, std::int64_t h, std::int64_t row,
                std::int64_t channel) {
  return b * tensor.strides[0] + h * tensor.strides[1] + row * tensor.strides[2] +
         channel * tensor.strides[3];
}

void check_sense(const SdpaGraph& graph) {
  const bool fits = graph.q.sizes[3] == graph.k.sizes[3] && graph.k.sizes[2] == graph.v.sizes[2] &&
                    graph.q.sizes[2] == graph.out.sizes[2] &&
                    graph.v.sizes[3] == graph.out.sizes[3] &&
                    graph.q.sizes[1] % graph.k.sizes[1] == 0 && graph.scale > 0;
  const bool has_diagonals = graph.diagonals.left_bound || graph.diagonals.right_bound;
  const bool has_shape = !has_diagonals || graph.q.sizes[2] <= graph.k.sizes[2];
  if (!fits || !has_shape) throw std::logic_error("no sense in the graph");
}

template <class Element>
class MemoryAttention {
 public:
  MemoryAttention(const SdpaGraph& graph, const SdpaPointers& pointers)
      : graph_(graph),
        q_(static_cast<const Element*>(pointers.q)),
        k_(static_cast<const Element*>(pointers.k)),
        v_(static_cast<const Element*>(pointers.v)),
        out_(static_cast<Element*>(pointers.out)),
        lse_(pointers.lse) {}

  void run() {
    for (std::int64_t b = 0; b < graph_.q.sizes[0]; ++b) {
      for (std::int64_t h = 0; h < graph_.q.sizes[1]; ++h) {
        for (std::int64_t i = 0; i < graph_.q.sizes[2]; ++i) attend(b, h, i);
      }
    }
  }

 private:
  double score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t c = 0; c < graph_.q.sizes[3]; ++c) {
      sum += static_cast<double>(q_[at(graph_.q, b, h, i, c)]) *
             static_cast<double>(k_[at(graph_.k, b, kv_head(h), j, c)]);
    }
    return sum * static_cast<double>(graph_.scale);
  }
  std::int64_t kv_head(std::int64_t h) const { return h * graph_.k.sizes[1] / graph_.q.sizes[1]; }

  void attend(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t keys = graph_.k.sizes[2];
    std::vector<double> weights(static_cast<std::size_t>(keys), -kInfinity);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (shows(graph_, i, j)) weights[static_cast<std::size_t>(j)] = score(b, h, i, j);
    }
    const double top = *std::ranges::max_element(weights);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - top);
    lse_[at(graph_.lse, b, h, i, 0)] = static_cast<float>(top + std::log(sum));
    for (std::int64_t c = 0; c < graph_.out.sizes[3]; ++c) {
      double mean = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double weight = weights[static_cast<std::size_t>(j)];
        mean += weight / sum * static_cast<double>(v_[at(graph_.v, b, kv_head(h), j, c)]);
      }
      out_[at(graph_.out, b, h, i, c)] = static_cast<Element>(mean);
    }
  }

  const SdpaGraph& graph_;
  const Element *q_, *k_, *v_;
  Element* out_;
  float* lse_;
};

}  // namespace

bool shows(const SdpaGraph& graph, std::int64_t i, std::int64_t j) {
  const SdpaDiagonals& diagonals = graph.diagonals;
  const std::int64_t shift =
      diagonals.corner == Corner::bottom_right ? graph.k.sizes[2] - graph.q.sizes[2] : 0;
  if (diagonals.right_bound && j > i + shift + *diagonals.right_bound) return false;
  return !diagonals.left_bound || j > i + shift - *diagonals.left_bound;
}

SdpaRunner memory_runner() {
  return {.workspace_bytes = [](const SdpaGraph&) { return kWorkspace; },
          .run =
              [](const SdpaGraph& graph, const SdpaPointers& pointers, cuda::Stream) {
                check_sense(graph);
                std::fill_n(pointers.workspace, kWorkspace, std::byte{0x7f});
                if (graph.dtype == DType::f16) {
                  MemoryAttention<Half>(graph, pointers).run();
                } else {
                  MemoryAttention<BFloat16>(graph, pointers).run();
                }
              }};
}

}  // namespace ringlab::cudnn
