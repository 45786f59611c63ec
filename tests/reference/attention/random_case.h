// Small random attention problems of every kind the oracle promises to handle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/run.h"

namespace ringlab::testing {

struct RandomCase {
  Problem problem;
  AttentionTensors tensors;
  Tensor<double> dout;
  AttentionInput input() const { return tensors.input(problem); }
};

/// What the values look like.
enum class Values { normal, peaked, gaps, subnormal, shifted, edges, small_integers };
inline constexpr int kValuesCount = 7;

struct CaseLimits {
  std::int64_t tokens = 12;
  std::int64_t dim = 5;
  DType dtype = DType::f64;
};

class CaseMaker {
 public:
  CaseMaker(std::uint64_t seed, const CaseLimits& limits) : random_(seed), limits_(limits) {}

  RandomCase make() {
    RandomCase result;
    Problem& problem = result.problem;
    problem.dtype = limits_.dtype;
    problem.shape = shape();
    problem.scale = pick(4) == 0 ? std::ldexp(1.0 + unit(), pick(5) - 3)
                                 : default_scale(problem.shape.head_dim);
    problem.mask = Mask(terms(problem.shape)).bind(problem.shape.q_tokens, problem.shape.kv_tokens);
    const Values kind = static_cast<Values>(pick(kValuesCount));
    result.tensors.q = filled(problem.shape.q(), kind, kind == Values::gaps ? 30 : 1);
    result.tensors.k = filled(problem.shape.k(), kind, 1);
    result.tensors.v =
        filled(problem.shape.v(), kind == Values::shifted ? Values::normal : kind, 1);
    result.dout = filled(problem.shape.out(), pick(2) ? Values::normal : kind, 1);
    return result;
  }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  double unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double normal() { return std::normal_distribution<double>()(random_); }

  Shape shape() {
    Shape s;
    s.batch = between(1, 2);
    s.kv_heads = between(1, 2);
    s.q_heads = s.kv_heads * between(1, 2);
    s.q_tokens = between(0, limits_.tokens);
    s.kv_tokens = pick(2) ? s.q_tokens : between(0, limits_.tokens);
    s.head_dim = between(1, limits_.dim);
    s.v_dim = pick(2) ? s.head_dim : between(1, limits_.dim);
    return s;
  }

  MaskTerm term(const Shape& s) {
    switch (pick(5)) {
      case 0:
        return CausalMask{};
      case 1:
        return WindowMask{pick(4) ? between(0, s.kv_tokens) : WindowMask::kUnlimited,
                          pick(4) ? between(0, s.kv_tokens) : WindowMask::kUnlimited};
      case 2: {
        DocumentsMask documents;
        for (std::int64_t left = s.kv_tokens; left > 0; left -= documents.lengths.back()) {
          documents.lengths.push_back(between(0, left));
        }
        return documents;
      }
      case 3:
        return PrefixMask{between(0, s.kv_tokens)};
      default: {
        std::vector<std::uint8_t> bits(static_cast<std::size_t>(s.q_tokens * s.kv_tokens));
        for (std::uint8_t& bit : bits) bit = pick(3) != 0;
        return BitMask{s.q_tokens, s.kv_tokens, bits, "random"};
      }
    }
  }

  std::vector<MaskTerm> terms(const Shape& s) {
    std::vector<MaskTerm> result;
    for (int i = pick(4); i > 1; --i) result.push_back(term(s));
    if (pick(3)) result.push_back(term(s));
    return result;
  }

  double value(Values kind, std::int64_t token) {
    const double least = dtype_info(limits_.dtype).min_subnormal;
    switch (kind) {
      case Values::normal:
        return normal();
      case Values::peaked:
        return 8 * normal();
      case Values::gaps:
        return normal() * (token % 3 == 0 ? 1 : 5);
      case Values::subnormal:
        return pick(4) ? std::round(100 * normal()) * least : normal();
      case Values::shifted:
        return 20 + normal();
      case Values::edges: {
        constexpr double kEdges[] = {0.0, -0.0, 1, -1, 0x1p-12, 3, -7, 0x1p6};
        return pick(8) ? kEdges[pick(8)] : least;
      }
      case Values::small_integers:
        return static_cast<double>(between(-3, 3));
    }
    return 0;
  }

  Tensor<double> filled(const Extents& extents, Values kind, double factor) {
    Tensor<double> tensor(extents);
    for_each_index(extents, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
      tensor(b, h, t, c) = round_to(limits_.dtype, factor * value(kind, t));
    });
    return tensor;
  }

  std::mt19937_64 random_;
  CaseLimits limits_;
};

inline RandomCase random_case(std::uint64_t seed, const CaseLimits& limits = {}) {
  return CaseMaker(seed, limits).make();
}

}  // namespace ringlab::testing
