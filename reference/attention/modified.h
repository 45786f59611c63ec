// Score modifiers as the oracle reads core/modifiers.h: one score, one sink, one pair at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/core/problem.h"

namespace ringlab {

/// A score on its way from scale · q·k to the softmax, with its error.
struct ModifiedScore {
  double value = 0;      ///< after soft-capping and ALiBi
  double error = 0;      ///< of value
  double capped = 0;     ///< after soft-capping
  double bias = 0;       ///< slope · distance, subtracted
  double steepness = 1;  ///< 1 - tanh²: the derivative of soft-capping
  double steepness_error = 0;
};

/// Soft-capping and ALiBi, with an error certified like everything of the oracle.
class ScoreModifier {
 public:
  explicit ScoreModifier(const Problem& problem);
  /// `score` is scale · q·k, wrong by at most `error`.
  ModifiedScore operator()(std::int64_t q_head, std::int64_t query, std::int64_t key, double score,
                           double error) const;
  /// The sink of a query head, if it has one.
  std::optional<double> sink(std::int64_t q_head) const;

 private:
  const Modifiers* modifiers_;
  std::int64_t offset_;  ///< position of query 0 among the keys: aligned at the bottom right
};

/// The pairs that dropout keeps.
class Dropout {
 public:
  explicit Dropout(const Modifiers& modifiers);
  bool active() const { return factor_ != 1 || threshold_ != 0; }
  bool keeps(std::int64_t batch, std::int64_t q_head, std::int64_t query, std::int64_t key) const;
  /// f_ij: 0, or 1 / (1 - p) within two roundings.
  double factor(std::int64_t batch, std::int64_t q_head, std::int64_t query,
                std::int64_t key) const {
    return !active() || keeps(batch, q_head, query, key) ? factor_ : 0;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t threshold_;
  double factor_;
};

/// Four random words of Philox4x32-10, the library's.
struct PhiloxWords {
  std::uint32_t word[4];
};
PhiloxWords random_words(const PhiloxWords& counter, std::uint64_t key);

}  // namespace ringlab
