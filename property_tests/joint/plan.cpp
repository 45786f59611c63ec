#include "property_tests/joint/plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "property_tests/generators/cases.h"
#include "property_tests/generators/reach.h"
#include "property_tests/joint/covering.h"
#include "property_tests/joint/meetings.h"

namespace ringlab::verify {
namespace {

constexpr std::size_t kFewShapes = 4;

constexpr std::int64_t kMostQueriesCompared = 64, kMostHeadsCompared = 3;

Work operator*(const Work& budget, std::int64_t factor) {
  return {.subject = budget.subject * factor, .reference = budget.reference * factor};
}

/// The budget in a round, counted from 0.
Work in_round(Work budget, std::uint64_t round) {
  for (const Reach& reach : kReaches) {
    if (reach.from_round > 0 && reach.from_round <= round) budget = budget * 4;
  }
  return budget;
}

/// The heads of a group that are compared.
std::int64_t compared_heads(const Shape& s) {
  const std::int64_t group = s.q_heads / s.kv_heads;
  return s.kv_heads == 1 ? std::min(group, kMostHeadsCompared) : group;
}

/// Makes rows of classes into cases for one subject.
class Planner {
 public:
  Planner(const Capabilities& can, const PlannedPass& pass, std::uint64_t seed, std::uint64_t round)
      : can_(can),
        pass_{in_round(pass.cells, round), in_round(pass.pairs, round), pass.enlargements,
              pass.compares_all_rows},
        round_(round),
        draws_(draws_of_round(seed, round)),
        classes_(claimed_classes(can)) {}

  std::vector<Case> cases() {
    CoveringDesign design(classes_, draws_);
    std::vector<Case> cases;
    Work budget = pass_.cells;
    const auto fits = [&](const Classes& row) { return is_within(budget, least_shape(row), row); };
    const auto add = [&](const Classes& row) { cases.push_back(case_of(row)); };
    for (const Classes& cell : cells()) {
      if (const auto row = design.completed(cell, fits)) add(*row);
    }
    budget = pass_.pairs;
    for (int i = 0; i <= pass_.enlargements; ++i) {
      while (const auto row = design.next(fits)) add(*row);
      budget = budget * 2;
    }
    if (can_.has(Ability::few_shapes)) cases.resize(std::min(cases.size(), kFewShapes));
    return cases;
  }

 private:
  /// The cells of the product as rows that are begun; other channels take turns.
  std::vector<Classes> cells() {
    std::vector<std::int8_t> others = classes_of(Factor::head_dim);
    std::erase_if(others, [](std::int8_t width) { return !is_other_width(width); });
    std::vector<Classes> rows;
    for (const Meetings::Cell& cell : claimed_cells(can_)) {
      Classes row;
      for (std::size_t i = 0; i < cell.size(); ++i) row[Meetings::kCellFactors[i]] = cell[i];
      if (row[Factor::head_dim] == kNoClass) {
        row[Factor::head_dim] = others[rows.size() % others.size()];
      }
      rows.push_back(row);
    }
    return rows;
  }

  const std::vector<std::int8_t>& classes_of(Factor factor) const {
    return classes_[static_cast<std::size_t>(factor)];
  }
  SizeClass sizes_of(const Classes& row, Factor factor) const {
    const std::int8_t number = row[factor] != kNoClass || classes_of(factor).empty()
                                   ? row[factor]
                                   : classes_of(factor).front();
    if (number == kNoClass) return {1, 1};
    return size_classes(factor)[static_cast<std::size_t>(number)];
  }

  /// The size as the subject takes channels: a multiple of its unit, within the class.
  std::int64_t whole_channels(std::int64_t size, const SizeClass& sizes) const {
    const std::int64_t unit = can_.head_dim_multiple;
    const std::int64_t below = std::min(size, can_.max_head_dim) / unit * unit;
    return below < sizes.first ? below + unit : below;
  }

  /// The smallest shape of the row.
  Shape least_shape(const Classes& row) const {
    const auto least = [&](Factor factor) { return sizes_of(row, factor).first; };
    Shape s;
    s.batch = least(Factor::batch);
    s.kv_heads = least(Factor::kv_heads);
    s.q_heads = s.kv_heads * least(Factor::group);
    s.kv_tokens = least(Factor::keys);
    s.q_tokens = can_.has(Ability::rectangular) ? least(Factor::queries) : s.kv_tokens;
    s.head_dim = whole_channels(least(Factor::head_dim), sizes_of(row, Factor::head_dim));
    s.v_dim = row[Factor::v_dim] == 1 ? can_.head_dim_multiple : s.head_dim;
    return s;
  }
  /// The work of a case; classes that are not chosen count least.
  Work work_of(const Shape& s, const Classes& row) const {
    // A pair costs the reference as much as 30 channels, and modifiers take its slower form. To make
    // an element of k or v, bring it to the subject and compare its gradient is some work, too.
    constexpr std::int64_t kPairWeight = 30, kModifiersWeight = 8;
    const std::int64_t element_weight = pass_.compares_all_rows ? 40 : 8;
    const std::int64_t channels = s.head_dim + s.v_dim;
    const std::int64_t keys = s.batch * s.kv_tokens;
    const std::int64_t rows =
        pass_.compares_all_rows
            ? s.q_heads * s.q_tokens
            : compared_heads(s) * s.kv_heads * std::min(s.q_tokens, kMostQueriesCompared);
    const bool is_slower = !pass_.compares_all_rows && row[Factor::modifiers] > 0;
    const std::int64_t weight = is_slower ? kModifiersWeight : 1;
    return {.subject = s.q_heads * s.q_tokens * keys * (channels + kPairWeight),
            .reference = weight * rows * keys * (channels + kPairWeight) +
                         element_weight * s.kv_heads * keys * channels};
  }
  bool is_within(const Work& budget, const Shape& s, const Classes& row) const {
    const Work work = work_of(s, row);
    const bool is_drawn = row[Factor::mask] != kNoClass && has_matrix(row[Factor::mask]);
    return work.subject <= budget.subject && work.reference <= budget.reference &&
           (!is_drawn || s.q_tokens * s.kv_tokens <= kMostDrawnPairs);
  }
  /// The budget for sizes that are drawn: little more than the least case of the row, or what is
  /// little at all.
  Work budget_of(const Classes& row) const {
    const auto more = [](std::int64_t least, std::int64_t small) {
      return std::max(least + least / 4, small);
    };
    const Work least = work_of(least_shape(row), row);
    return {more(least.subject, pass_.pairs.subject), more(least.reference, pass_.pairs.reference)};
  }
  static bool has_matrix(std::int8_t mask) {
    const auto& classes = mask_classes();
    const auto& kinds = classes[static_cast<std::size_t>(mask)];
    return static_cast<std::size_t>(mask) + 1 == classes.size() ||
           std::count(kinds.begin(), kinds.end(), std::variant_size_v<MaskTerm> - 1) > 0;
  }

  /// A shape of the row: sizes are drawn one after the other, and those that exceed the budget stay
  /// the least of their class.
  Shape drawn_shape(const Classes& row) {
    const Work budget = budget_of(row);
    const std::int64_t stretch = std::int64_t{1} << std::min<std::uint64_t>(round_, 4);
    Shape shape = least_shape(row);
    const auto draw = [&](Factor factor, std::int64_t Shape::*size, std::int64_t times) {
      Shape larger = shape;
      larger.*size = times * planned_size(draws_, sizes_of(row, factor), stretch);
      larger.head_dim = whole_channels(larger.head_dim, sizes_of(row, Factor::head_dim));
      if (!can_.has(Ability::rectangular)) larger.q_tokens = larger.kv_tokens;
      if (row[Factor::v_dim] != 1) larger.v_dim = larger.head_dim;
      if (is_within(budget, larger, row)) shape = larger;
    };
    draw(Factor::keys, &Shape::kv_tokens, 1);
    if (can_.has(Ability::rectangular)) draw(Factor::queries, &Shape::q_tokens, 1);
    draw(Factor::head_dim, &Shape::head_dim, 1);
    if (row[Factor::v_dim] == 1) draw_v_dim(row, budget, shape);
    draw(Factor::group, &Shape::q_heads, shape.kv_heads);
    draw(Factor::batch, &Shape::batch, 1);
    return shape;
  }
  /// Draws a width of any class that is not head_dim.
  void draw_v_dim(const Classes& row, const Work& budget, Shape& shape) {
    constexpr int kTries = 20;
    const auto& widths = classes_of(Factor::head_dim);
    for (int i = 0; i < kTries; ++i) {
      const auto width = widths[static_cast<std::size_t>(draws_.below(std::ssize(widths)))];
      Shape other = shape;
      const SizeClass channels = size_classes(Factor::head_dim)[static_cast<std::size_t>(width)];
      other.v_dim = whole_channels(planned_size(draws_, channels, 1), channels);
      if (other.v_dim == shape.head_dim || !is_within(budget, other, row)) continue;
      shape = other;
      return;
    }
  }

  Case case_of(const Classes& row) {
    Case c = random_case(draws_);
    c.shape = drawn_shape(row);
    c.dtype = dtype_of_class(row[Factor::dtype]);
    c.mask = planned_mask(draws_, row[Factor::mask], c.shape);
    c.modifiers = modifiers_of(row[Factor::modifiers]);
    c.scale = row[Factor::scale] == 0 ? ScaleKind::rsqrt
                                      : static_cast<ScaleKind>(draws_.between(1, kScales - 1));
    c.threads = static_cast<int>(planned_size(draws_, sizes_of(row, Factor::threads), 1));
    c.ranks = static_cast<int>(planned_size(draws_, sizes_of(row, Factor::ranks), 1));
    c.family = family_of(c.shape, c.family);
    if (c.shape.kv_tokens > 127) c.tile_keys = std::max<std::int64_t>(c.tile_keys, 32);
    if (c.shape.q_tokens > 15) c.tile_queries = std::max<std::int64_t>(c.tile_queries, 16);
    const auto order = static_cast<std::uint64_t>(std::max<std::int8_t>(0, row[Factor::strides]));
    c.seed = c.seed / kPlannedSeeds * kPlannedSeeds + order + round_ * kCaseSeeds;
    return fitted(std::move(c));
  }

  CaseModifiers modifiers_of(std::int8_t number) {
    CaseModifiers modifiers;
    for (std::size_t i = 0; i < kModifierKinds.size(); ++i) {
      const ModifierKind kind = kModifierKinds[i];
      const bool is_meant = number == kSeveralModifiers
                                ? can_.modifiers.knows(kind) && draws_.chance(70)
                                : static_cast<std::size_t>(number) == 1 + i;
      if (!is_meant) continue;
      const int most = words_of(kind).most_drawn;
      modifiers.set(kind, most > 1 ? static_cast<double>(draws_.between(1, most)) : 1);
    }
    return modifiers;
  }

  /// Values that tell when one key of many is lost; short rows have any.
  Family family_of(const Shape& shape, Family drawn) {
    if (shape.kv_tokens < 128) return drawn;
    const std::int64_t kind = draws_.below(100);
    if (kind < 45) return shape.v_dim < 16 ? Family::heavy_key : Family::one_channel;
    if (kind < 90) return Family::heavy_key;
    return kind < 95 ? Family::cancelling : Family::peaked;
  }

  static constexpr int kScales = static_cast<int>(count_kinds<ScaleKind, scale_name>());

  const Capabilities& can_;
  PlannedPass pass_;
  std::uint64_t round_;
  Draws draws_;
  FactorClasses classes_;
};

}  // namespace

std::vector<Case> planned_cases(const Capabilities& can, const PlannedPass& pass,
                                std::uint64_t seed, std::uint64_t round) {
  return Planner(can, pass, seed, round).cases();
}

ComparedRows compared_rows(const Case& c) {
  const Shape& s = c.shape;
  const std::int64_t group = s.q_heads / s.kv_heads;
  std::int64_t heads = s.q_heads, first = 0, step = 1;
  if (c.modifiers.dropout_percent == 0 && compared_heads(s) < group) {
    heads = compared_heads(s);
    step = (group - 1) / (heads - 1);
    // The heads from the first on, or those to the last.
    if (c.seed / kPlannedSeeds % 2 == 1) first = group - 1 - step * (heads - 1);
  }
  ComparedRows rows;
  for (std::int64_t i = 0; i < heads; ++i) rows.heads.push_back(first + i * step);
  const std::int64_t count = std::min(s.q_tokens, kMostQueriesCompared);
  for (std::int64_t i = 0; i < count; ++i) {
    rows.queries.push_back(count == 1 ? 0 : i * (s.q_tokens - 1) / (count - 1));
  }
  return rows;
}

InputOrder input_order(const Case& c) {
  return static_cast<InputOrder>(std::min<std::uint64_t>(c.seed % kPlannedSeeds, 2));
}

std::int64_t planned_size(Draws& draws, const SizeClass& sizes, std::int64_t stretch) {
  // A class without end goes to twice its first size, and as many times farther as `stretch` says.
  const std::int64_t last = std::min(sizes.last, 2 * stretch * sizes.first);
  const std::int64_t size = draws.between(sizes.first, last);
  if (draws.chance(50)) return size;
  const std::int64_t unit = std::int64_t{16} << draws.below(6);
  const std::int64_t beside = size / unit * unit + draws.between(-1, 1);
  return std::clamp(beside, sizes.first, last);
}

}  // namespace ringlab::verify
