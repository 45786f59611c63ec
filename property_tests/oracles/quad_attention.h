// The oracle of the oracle: attention and its gradients in any real type, meant for 113 bits.
//
// Naive on purpose and written apart from exact_forward and exact_backward: whole matrices, one
// mask matrix per term, the Jacobian of softmax as a double sum. Only for tiny problems.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "property_tests/oracles/quad_mask.h"
#include "property_tests/oracles/quad_modifiers.h"
#include "reference/core/run.h"

namespace ringlab::quad {

/// IEEE binary128: 113 significant bits, exponents to ±16383.
using Quad = boost::multiprecision::cpp_bin_float_quad;

template <class Real>
struct Forward {
  std::vector<Real> out;    ///< (batch, q_heads, q_tokens, v_dim)
  std::vector<Real> lse;    ///< (batch, q_heads, q_tokens); meaningless where `empty`
  std::vector<char> empty;  ///< the row sees no key and has no sink
};

template <class Real>
struct Backward {
  std::vector<Real> dq, dk, dv;
  std::vector<Real> dsinks;  ///< (q_heads), where there are sinks
};

/// The matrices of one batch element and query head.
template <class Real>
class Head {
 public:
  Head(const AttentionInput& input, const Matrix& mask, std::int64_t batch, std::int64_t q_head)
      : rows_(input.problem.shape.q_tokens), keys_(input.problem.shape.kv_tokens) {
    const Shape& shape = input.problem.shape;
    std::int64_t kv_head = 0;  // counts up once per full group of query heads
    for (std::int64_t h = 1; h <= q_head; ++h) kv_head += h % (shape.q_heads / shape.kv_heads) == 0;
    q = copy(input.q, batch, q_head);
    k = copy(input.k, batch, kv_head);
    v = copy(input.v, batch, kv_head);
    kv = kv_head;
    fill_probabilities(input, mask, HeadModifiers<Real>(input.problem, batch, q_head));
  }

  static std::vector<Real> copy(const TensorView<const double>& tensor, std::int64_t batch,
                                std::int64_t head) {
    std::vector<Real> values;
    for (std::int64_t t = 0; t < tensor.extents.tokens; ++t) {
      for (std::int64_t c = 0; c < tensor.extents.channels; ++c) {
        values.emplace_back(tensor(batch, head, t, c));
      }
    }
    return values;
  }

  static std::size_t at(std::int64_t row, std::int64_t column, std::int64_t columns) {
    return static_cast<std::size_t>(row * columns + column);
  }

  std::vector<Real> q, k, v;
  std::vector<Real> p;                  ///< (q_tokens, kv_tokens), 0 where masked
  std::vector<Real> factor, steepness;  ///< of each pair: dropout, derivative of soft-capping
  std::vector<Real> sink_p;             ///< per query: the probability that the sink takes
  std::vector<Real> lse;
  std::vector<char> empty;
  std::int64_t kv = 0;

 private:
  void fill_probabilities(const AttentionInput& input, const Matrix& mask,
                          const HeadModifiers<Real>& modifiers) {
    using std::exp;
    using std::log;
    const std::int64_t dim = input.problem.shape.head_dim;
    const Real scale(input.problem.scale);
    p.assign(static_cast<std::size_t>(rows_ * keys_), Real(0));
    factor = steepness = p;
    sink_p.assign(static_cast<std::size_t>(rows_), Real(0));
    lse.assign(static_cast<std::size_t>(rows_), Real(0));
    empty.assign(static_cast<std::size_t>(rows_), 1);
    for (std::int64_t i = 0; i < rows_; ++i) {
      Real shift(0), sum(0);  // any shift is exact enough; the first score keeps exp in range
      char& none = empty[static_cast<std::size_t>(i)];
      if (modifiers.has_sink()) {
        shift = modifiers.sink();
        none = 0;
      }
      for (std::int64_t j = 0; j < keys_; ++j) {
        if (!mask[at(i, j, keys_)]) continue;
        Real s(0);
        for (std::int64_t c = 0; c < dim; ++c) s += q[at(i, c, dim)] * k[at(j, c, dim)];
        s *= scale;
        factor[at(i, j, keys_)] = modifiers.factor(i, j);
        steepness[at(i, j, keys_)] = modifiers.steepness(s);
        s = modifiers.score(s, i, j);
        p[at(i, j, keys_)] = s;
        if (none || s > shift) shift = s;
        none = 0;
      }
      for (std::int64_t j = 0; j < keys_; ++j) {
        if (!mask[at(i, j, keys_)]) continue;
        p[at(i, j, keys_)] = exp(p[at(i, j, keys_)] - shift);
        sum += p[at(i, j, keys_)];
      }
      if (none) continue;
      if (modifiers.has_sink()) {
        Real& sink = sink_p[static_cast<std::size_t>(i)];
        sink = exp(Real(modifiers.sink() - shift));
        sum += sink;
        sink /= sum;
      }
      for (std::int64_t j = 0; j < keys_; ++j) p[at(i, j, keys_)] /= sum;
      lse[static_cast<std::size_t>(i)] = shift + log(sum);
    }
  }

  std::int64_t rows_, keys_;
};

/// Skips masked keys, so that they and their values may hold anything: probability exactly zero.
template <class Real>
Forward<Real> forward(const AttentionInput& input) {
  const Shape& shape = input.problem.shape;
  const Matrix mask = MaskPainter(shape.q_tokens, shape.kv_tokens).paint(input.problem.mask);
  Forward<Real> result;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const Head<Real> head(input, mask, b, h);
      result.lse.insert(result.lse.end(), head.lse.begin(), head.lse.end());
      result.empty.insert(result.empty.end(), head.empty.begin(), head.empty.end());
      for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
        for (std::int64_t c = 0; c < shape.v_dim; ++c) {
          Real sum(0);
          for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
            if (!mask[head.at(i, j, shape.kv_tokens)]) continue;
            sum += head.p[head.at(i, j, shape.kv_tokens)] *
                   head.factor[head.at(i, j, shape.kv_tokens)] * head.v[head.at(j, c, shape.v_dim)];
          }
          result.out.push_back(sum);
        }
      }
    }
  }
  return result;
}

/// Gradient of each scaled score: steepness_ij Σ_l P_ij (δ_jl - P_il) f_il dP_il, term by term.
template <class Real>
std::vector<Real> score_gradients(const Shape& shape, const Matrix& mask, const Head<Real>& head,
                                  const std::vector<Real>& dout) {
  const std::int64_t keys = shape.kv_tokens;
  std::vector<Real> ds(head.p.size(), Real(0));
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t l = 0; l < keys; ++l) {
      if (!mask[head.at(i, l, keys)]) continue;
      Real dp(0);
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        dp += dout[head.at(i, c, shape.v_dim)] * head.v[head.at(l, c, shape.v_dim)];
      }
      dp *= head.factor[head.at(i, l, keys)];
      for (std::int64_t j = 0; j < keys; ++j) {
        const Real here =
            j == l ? Real(1) - head.p[head.at(i, l, keys)] : Real(-head.p[head.at(i, l, keys)]);
        ds[head.at(i, j, keys)] +=
            head.p[head.at(i, j, keys)] * head.steepness[head.at(i, j, keys)] * here * dp;
      }
    }
  }
  return ds;
}

/// -Σ_i P_i,sink D_i of one head, D_i = dO_i·o_i.
template <class Real>
Real sink_gradient(const Shape& shape, const Matrix& mask, const Head<Real>& head,
                   const std::vector<Real>& dout) {
  Real sum(0);
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      const std::size_t pair = head.at(i, j, shape.kv_tokens);
      if (!mask[pair]) continue;
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        sum -= head.sink_p[static_cast<std::size_t>(i)] * head.p[pair] * head.factor[pair] *
               head.v[head.at(j, c, shape.v_dim)] * dout[head.at(i, c, shape.v_dim)];
      }
    }
  }
  return sum;
}

template <class Real>
Backward<Real> backward(const AttentionInput& input, const TensorView<const double>& dout) {
  const Shape& shape = input.problem.shape;
  const Matrix mask = MaskPainter(shape.q_tokens, shape.kv_tokens).paint(input.problem.mask);
  const Real scale(input.problem.scale);
  const std::int64_t dim = shape.head_dim;
  Backward<Real> result;
  result.dq.assign(static_cast<std::size_t>(shape.q().size()), Real(0));
  result.dk.assign(static_cast<std::size_t>(shape.k().size()), Real(0));
  result.dv.assign(static_cast<std::size_t>(shape.v().size()), Real(0));
  result.dsinks.assign(input.problem.modifiers.sinks.size(), Real(0));
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const Head<Real> head(input, mask, b, h);
      const std::vector<Real> upstream = head.copy(dout, b, h);
      const std::vector<Real> ds = score_gradients(shape, mask, head, upstream);
      if (!result.dsinks.empty()) {
        result.dsinks[static_cast<std::size_t>(h)] += sink_gradient(shape, mask, head, upstream);
      }
      const std::int64_t q_row = (b * shape.q_heads + h) * shape.q_tokens;
      const std::int64_t kv_row = (b * shape.kv_heads + head.kv) * shape.kv_tokens;
      for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
        for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
          if (!mask[head.at(i, j, shape.kv_tokens)]) continue;
          const Real s = scale * ds[head.at(i, j, shape.kv_tokens)];
          for (std::int64_t c = 0; c < dim; ++c) {
            result.dq[head.at(q_row + i, c, dim)] += s * head.k[head.at(j, c, dim)];
            result.dk[head.at(kv_row + j, c, dim)] += s * head.q[head.at(i, c, dim)];
          }
          for (std::int64_t c = 0; c < shape.v_dim; ++c) {
            result.dv[head.at(kv_row + j, c, shape.v_dim)] +=
                head.p[head.at(i, j, shape.kv_tokens)] *
                head.factor[head.at(i, j, shape.kv_tokens)] * upstream[head.at(i, c, shape.v_dim)];
          }
        }
      }
    }
  }
  return result;
}

}  // namespace ringlab::quad
