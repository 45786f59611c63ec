#include "property_tests/joint/meetings.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringlab::verify {
namespace {

// Classes of size_classes().
constexpr std::int8_t kOf32Channels = 1, kOf64Channels = 2, kOf128Channels = 4;
constexpr std::array<std::int8_t, 3> kGroups = {0, 2, 3}, kLengths = {3, 4, 5};

bool has(const std::vector<std::int8_t>& classes, std::int8_t number) {
  return std::find(classes.begin(), classes.end(), number) != classes.end();
}

}  // namespace

bool is_other_width(std::int8_t channels) {
  return channels >= kOf32Channels && channels != kOf64Channels && channels != kOf128Channels;
}

std::string ClassPair::words() const {
  return fmt::format("{} {} × {} {}", factor_name(first), class_words(first, first_class),
                     factor_name(second), class_words(second, second_class));
}

std::string cell_words(const Meetings::Cell& cell) {
  const auto words = [&](std::size_t i) { return class_words(Meetings::kCellFactors[i], cell[i]); };
  return fmt::format("{}, head_dim {}, {} heads per K/V head, {} keys", words(0),
                     cell[1] == kNoClass ? "another" : words(1), words(2), words(3));
}

std::size_t Meetings::index_of(const ClassPair& pair) {
  const auto index = [](Factor factor, std::int8_t number) {
    return static_cast<std::size_t>(factor) * kMostClasses + static_cast<std::size_t>(number);
  };
  return index(pair.first, pair.first_class) * kAllClasses + index(pair.second, pair.second_class);
}

void Meetings::add(const Classes& call) {
  for (const Factor first : kAllFactors) {
    for (const Factor second : kAllFactors) {
      if (first >= second || call[first] == kNoClass || call[second] == kNoClass) continue;
      pairs_.set(index_of({first, call[first], second, call[second]}));
    }
  }
  Cell cell;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    cell[i] = call[kCellFactors[i]];
    if (cell[i] == kNoClass) return;
  }
  if (cell.back() >= kLengths.front()) ++cells_[cell];
}

void Meetings::add(const Meetings& other) {
  pairs_ |= other.pairs_;
  for (const auto& [cell, calls] : other.cells_) cells_[cell] += calls;
}

std::int64_t Meetings::calls(const Cell& cell) const {
  std::int64_t sum = 0;
  for (const auto& [met, calls] : cells_) {
    Cell known = met;
    if (cell[1] == kNoClass && is_other_width(met[1])) known[1] = kNoClass;
    if (known == cell) sum += calls;
  }
  return sum;
}

std::vector<ClassPair> pairs_of(const FactorClasses& classes) {
  std::vector<ClassPair> pairs;
  for (const Factor first : kAllFactors) {
    for (const Factor second : kAllFactors) {
      if (first >= second) continue;
      for (const std::int8_t one : classes[static_cast<std::size_t>(first)]) {
        for (const std::int8_t other : classes[static_cast<std::size_t>(second)]) {
          pairs.push_back({first, one, second, other});
        }
      }
    }
  }
  return pairs;
}

std::vector<ClassPair> claimed_pairs(const Capabilities& can) {
  return pairs_of(claimed_classes(can));
}

std::vector<Meetings::Cell> claimed_cells(const Capabilities& can) {
  const std::vector<std::int8_t> widths = claimed_classes(Factor::head_dim, can);
  std::vector<std::int8_t> channels;
  for (const std::int8_t width : {kOf64Channels, kOf128Channels}) {
    if (has(widths, width)) channels.push_back(width);
  }
  if (std::any_of(widths.begin(), widths.end(), is_other_width)) channels.push_back(kNoClass);
  const std::vector<std::int8_t> groups = claimed_classes(Factor::group, can);
  std::vector<Meetings::Cell> cells;
  for (const std::int8_t dtype : claimed_classes(Factor::dtype, can)) {
    for (const std::int8_t width : channels) {
      for (const std::int8_t group : kGroups) {
        if (!has(groups, group)) continue;
        for (const std::int8_t keys : kLengths) cells.push_back({dtype, width, group, keys});
      }
    }
  }
  return cells;
}

}  // namespace ringlab::verify
