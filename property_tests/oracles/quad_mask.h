// Masks for the oracle of the oracle: one matrix per term, painted, then intersected.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "reference/core/mask.h"

namespace ringlab::quad {

/// (q_tokens, kv_tokens), row-major; char, not bool, to stay a plain array.
using Matrix = std::vector<char>;

/// Written apart from visible.h on purpose: rows are painted key by key, document by document.
class MaskPainter {
 public:
  MaskPainter(std::int64_t q_tokens, std::int64_t kv_tokens)
      : q_tokens_(q_tokens), kv_tokens_(kv_tokens) {}

  Matrix paint(const Mask& mask) const {
    Matrix all(static_cast<std::size_t>(q_tokens_ * kv_tokens_), 1);
    for (const MaskTerm& term : mask.terms()) {
      Matrix one(all.size(), 0);
      std::visit([&](const auto& t) { paint_term(t, one); }, term);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(all[i] & one[i]);
    }
    return all;
  }

 private:
  /// Keys first … last (inclusive, clipped) of one query.
  void paint_keys(Matrix& m, std::int64_t query, std::int64_t first, std::int64_t last) const {
    for (std::int64_t j = 0; j < kv_tokens_; ++j) {
      if (j >= first && j <= last) m[static_cast<std::size_t>(query * kv_tokens_ + j)] = 1;
    }
  }
  /// Aligned bottom right: the last query stands at the last key.
  std::int64_t standing(std::int64_t query) const { return kv_tokens_ - (q_tokens_ - query); }

  void paint_term(const CausalMask&, Matrix& m) const {
    for (std::int64_t i = 0; i < q_tokens_; ++i) paint_keys(m, i, 0, standing(i));
  }
  void paint_term(const PrefixMask& prefix, Matrix& m) const {
    for (std::int64_t i = 0; i < q_tokens_; ++i) {
      paint_keys(m, i, 0, prefix.tokens - 1);
      paint_keys(m, i, 0, standing(i));
    }
  }
  void paint_term(const WindowMask& window, Matrix& m) const {
    for (std::int64_t i = 0; i < q_tokens_; ++i) {
      const bool no_left = window.left > kv_tokens_ + q_tokens_;
      const bool no_right = window.right > kv_tokens_ + q_tokens_;
      paint_keys(m, i, no_left ? 0 : standing(i) - window.left,
                 no_right ? kv_tokens_ - 1 : standing(i) + window.right);
    }
  }
  void paint_term(const DocumentsMask& documents, Matrix& m) const {
    std::int64_t begin = 0;
    for (const std::int64_t length : documents.lengths) {
      for (std::int64_t i = 0; i < q_tokens_; ++i) {
        if (standing(i) >= begin && standing(i) < begin + length) {
          paint_keys(m, i, begin, begin + length - 1);
        }
      }
      begin += length;
    }
  }
  void paint_term(const BitMask& matrix, Matrix& m) const {
    for (std::size_t i = 0; i < m.size(); ++i) m[i] = (*matrix.bits)[i] ? 1 : 0;
  }

  std::int64_t q_tokens_, kv_tokens_;
};

}  // namespace ringlab::quad
