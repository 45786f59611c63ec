// Meetings of classes: the pairs of them that calls have brought together.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/joint/factors.h"

namespace ringlab::verify {

/// Two classes of different factors, the earlier factor first.
struct ClassPair {
  Factor first;
  std::int8_t first_class;
  Factor second;
  std::int8_t second_class;
  /// "head_dim 128 × mask causal".
  std::string words() const;
};

/// The pairs of classes, and the products of sizes that models have, that calls had.
class Meetings {
 public:
  void add(const Classes& call);
  void add(const Meetings& other);
  bool has(const ClassPair& pair) const { return pairs_[index_of(pair)]; }
  bool empty() const { return pairs_.none(); }

  /// A cell of the product: classes of dtype, head_dim, group and keys.
  using Cell = std::array<std::int8_t, 4>;
  static constexpr std::array kCellFactors = {Factor::dtype, Factor::head_dim, Factor::group,
                                              Factor::keys};
  /// The calls of a cell.
  std::int64_t calls(const Cell& cell) const;

 private:
  static constexpr std::size_t kMostClasses = 12;  ///< of a factor
  static constexpr std::size_t kAllClasses = kMostClasses * kFactors;
  static std::size_t index_of(const ClassPair& pair);

  std::bitset<kAllClasses * kAllClasses> pairs_;
  std::map<Cell, std::int64_t> cells_;
};

/// "bf16, head_dim 128, 8 … heads per K/V head, 8192 … keys".
std::string cell_words(const Meetings::Cell& cell);

/// All pairs of classes of two factors.
std::vector<ClassPair> pairs_of(const FactorClasses& classes);
/// All pairs of classes that a subject with these abilities claims to take.
std::vector<ClassPair> claimed_pairs(const Capabilities& can);
/// True for a class of head_dim from 32 channels on that is neither 64 nor 128.
bool is_other_width(std::int8_t channels);
/// The cells of 64, 128 and other channels, 1, 4 and 8 heads of a group, 512, 2048 and 8192 keys in
/// each dtype, as far as the subject claims them. A cell for "other" channels has the class kNoClass.
std::vector<Meetings::Cell> claimed_cells(const Capabilities& can);

}  // namespace ringlab::verify
