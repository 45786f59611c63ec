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

void check_sense(const SdpaBackwardGraph& graph) {
  const bool fits = graph.q.sizes == graph.dq.sizes && graph.k.sizes == graph.dk.sizes &&
                    graph.v.sizes == graph.dv.sizes && graph.out.sizes == graph.dout.sizes &&
                    graph.q.sizes[3] == graph.k.sizes[3] && graph.k.sizes[2] == graph.v.sizes[2] &&
                    graph.q.sizes[2] == graph.out.sizes[2] &&
                    graph.v.sizes[3] == graph.out.sizes[3] &&
                    graph.q.sizes[1] % graph.k.sizes[1] == 0 && graph.scale > 0;
  const bool has_diagonals = graph.diagonals.left_bound || graph.diagonals.right_bound;
  const bool has_shape = !has_diagonals || graph.q.sizes[2] <= graph.k.sizes[2];
  const bool one_pair = graph.q.sizes[2] == 1 && graph.k.sizes[2] == 1;
  if (!fits || !has_shape || one_pair) throw std::logic_error("no sense in the backward graph");
}

template <class Graph>
bool is_shown(const Graph& graph, std::int64_t i, std::int64_t j) {
  const SdpaDiagonals& diagonals = graph.diagonals;
  const std::int64_t shift =
      diagonals.corner == Corner::bottom_right ? graph.k.sizes[2] - graph.q.sizes[2] : 0;
  if (diagonals.right_bound && j > i + shift + *diagonals.right_bound) return false;
  return !diagonals.left_bound || j > i + shift - *diagonals.left_bound;
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

template <class Element>
class MemoryGradients {
 public:
  MemoryGradients(const SdpaBackwardGraph& graph, const SdpaBackwardPointers& pointers)
      : graph_(graph), pointers_(pointers) {}

  void run() {
    for (std::int64_t b = 0; b < graph_.q.sizes[0]; ++b) {
      clear(graph_.dq, pointers_.dq, b);
      for (std::int64_t kv = 0; kv < graph_.k.sizes[1]; ++kv) differentiate(b, kv);
    }
  }

 private:
  using Sums = std::vector<double>;

  static double number(const void* data, std::int64_t place) {
    return static_cast<double>(static_cast<const Element*>(data)[place]);
  }
  static double rounded(double x) { return static_cast<double>(static_cast<Element>(x)); }
  static void clear(const SdpaTensor& tensor, void* data, std::int64_t b) {
    std::fill_n(static_cast<Element*>(data) + b * tensor.strides[0], tensor.strides[0],
                Element(0.0f));
  }
  static void write(const SdpaTensor& tensor, void* data, std::int64_t b, std::int64_t h,
                    const Sums& sums) {
    const std::int64_t channels = tensor.sizes[3];
    for (std::int64_t i = 0; i < tensor.sizes[2] * channels; ++i) {
      static_cast<Element*>(data)[at(tensor, b, h, i / channels, i % channels)] =
          static_cast<Element>(sums[static_cast<std::size_t>(i)]);
    }
  }
  static Sums zeros(const SdpaTensor& tensor) {
    return Sums(static_cast<std::size_t>(tensor.sizes[2] * tensor.sizes[3]));
  }
  static void add_rounded(Sums& sums, const Sums& more) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += rounded(more[i]);
  }
  template <class Visit>
  static double sum_over(std::int64_t count, Visit visit) {
    double sum = 0;
    for (std::int64_t c = 0; c < count; ++c) sum += visit(c);
    return sum;
  }

  /// All query heads that read one K/V head.
  void differentiate(std::int64_t b, std::int64_t kv) {
    const std::int64_t group = graph_.q.sizes[1] / graph_.k.sizes[1];
    Sums dk = zeros(graph_.dk), dv = zeros(graph_.dv);
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      Sums dq = zeros(graph_.dq), head_dk = zeros(graph_.dk), head_dv = zeros(graph_.dv);
      for (std::int64_t i = 0; i < graph_.q.sizes[2]; ++i) {
        add_row({b, h, kv, i}, dq, head_dk, head_dv);
      }
      write(graph_.dq, pointers_.dq, b, h, dq);
      add_rounded(dk, head_dk);
      add_rounded(dv, head_dv);
    }
    write(graph_.dk, pointers_.dk, b, kv, dk);
    write(graph_.dv, pointers_.dv, b, kv, dv);
  }

  struct Row {
    std::int64_t b, h, kv, i;
  };
  void add_row(const Row& r, Sums& dq, Sums& dk, Sums& dv) const {
    const std::int64_t width = graph_.q.sizes[3], v_width = graph_.v.sizes[3];
    const auto q = [&](std::int64_t c) {
      return number(pointers_.q, at(graph_.q, r.b, r.h, r.i, c));
    };
    const auto dout = [&](std::int64_t c) {
      return number(pointers_.dout, at(graph_.dout, r.b, r.h, r.i, c));
    };
    const double lse = static_cast<double>(pointers_.lse[at(graph_.lse, r.b, r.h, r.i, 0)]);
    const double delta = sum_over(v_width, [&](std::int64_t c) {
      return dout(c) * number(pointers_.out, at(graph_.out, r.b, r.h, r.i, c));
    });
    const double scale = static_cast<double>(graph_.scale);
    bool sees = false;
    for (std::int64_t j = 0; j < graph_.k.sizes[2]; ++j) {
      if (!shows(graph_, r.i, j)) continue;
      sees = true;
      const auto k = [&](std::int64_t c) {
        return number(pointers_.k, at(graph_.k, r.b, r.kv, j, c));
      };
      const auto v = [&](std::int64_t c) {
        return number(pointers_.v, at(graph_.v, r.b, r.kv, j, c));
      };
      const double score = scale * sum_over(width, [&](std::int64_t c) { return q(c) * k(c); });
      const double weight = std::exp(score - lse);
      const double slope =
          weight * (sum_over(v_width, [&](std::int64_t c) { return dout(c) * v(c); }) - delta);
      for (std::int64_t c = 0; c < v_width; ++c) {
        dv[static_cast<std::size_t>(j * v_width + c)] += rounded(weight) * dout(c);
      }
      for (std::int64_t c = 0; c < width; ++c) {
        dq[static_cast<std::size_t>(r.i * width + c)] += scale * rounded(slope) * k(c);
        dk[static_cast<std::size_t>(j * width + c)] += scale * rounded(slope) * q(c);
      }
    }
    if (!sees) throw std::logic_error("a query that sees nothing is asked for");
  }

  const SdpaBackwardGraph& graph_;
  const SdpaBackwardPointers& pointers_;
};

}  // namespace

bool shows(const SdpaGraph& graph, std::int64_t i, std::int64_t j) { return is_shown(graph, i, j); }
bool shows(const SdpaBackwardGraph& graph, std::int64_t i, std::int64_t j) {
  return is_shown(graph, i, j);
}

SdpaRunner memory_runner() {
  return {
      .workspace_bytes = [](const SdpaGraph&) { return kWorkspace; },
      .run =
          [](const SdpaGraph& graph, const SdpaPointers& pointers, cuda::Stream) {
            check_sense(graph);
            std::fill_n(pointers.workspace, kWorkspace, std::byte{0x7f});
            if (graph.dtype == DType::f16) {
              MemoryAttention<Half>(graph, pointers).run();
            } else {
              MemoryAttention<BFloat16>(graph, pointers).run();
            }
          },
      .backward_workspace_bytes = [](const SdpaBackwardGraph&) { return kWorkspace; },
      .run_backward =
          [](const SdpaBackwardGraph& graph, const SdpaBackwardPointers& pointers, cuda::Stream) {
            check_sense(graph);
            std::fill_n(pointers.workspace, kWorkspace, std::byte{0x7f});
            if (graph.dtype == DType::f16) {
              MemoryGradients<Half>(graph, pointers).run();
            } else {
              MemoryGradients<BFloat16>(graph, pointers).run();
            }
          }};
}

}  // namespace ringlab::cudnn
