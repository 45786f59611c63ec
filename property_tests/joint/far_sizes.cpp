// Cases whose sizes stand at powers of two, where indices of so many bits end.
#include <algorithm>
#include <array>
#include <utility>

#include "property_tests/generators/cases.h"
#include "property_tests/joint/plan.h"

namespace ringlab::verify {
namespace {

constexpr std::array kBits = {7, 8, 12, 15, 16};
/// Modifiers cost the reference much time where keys are many.
constexpr int kPercentWithModifiers = 25;

class FarSizes {
 public:
  FarSizes(const Capabilities& can, std::uint64_t seed, std::uint64_t round, bool few_pairs)
      : can_(can), round_(round), few_pairs_(few_pairs), draws_(draws_of_round(seed, round)) {}

  std::vector<Case> cases() {
    for (const int bits : kBits) {
      // Later rounds go beyond: to 2^20, which is the most that a replay token takes.
      const int further = static_cast<int>(std::min<std::uint64_t>(round_, 3));
      const std::int64_t power = std::int64_t{1} << (bits == kBits.back() ? bits + further : bits);
      for (const std::int8_t mask : masks()) add_keys(power, mask);
      for (const ModifierKind kind : {ModifierKind::alibi, ModifierKind::dropout}) {
        if (can_.modifiers.knows(kind)) add_modified_keys(power, kind);
      }
      if (can_.has(Ability::rectangular)) add_queries(power);
      add_heads(power);
      add_documents(power);
    }
    return std::move(cases_);
  }

 private:
  /// The claimed masks; with few pairs two of them.
  std::vector<std::int8_t> masks() {
    std::vector<std::int8_t> all = claimed_classes(Factor::mask, can_);
    while (few_pairs_ && all.size() > 2) all.erase(all.begin() + draws_.below(std::ssize(all)));
    return all;
  }

  /// The power, or one beside it.
  std::int64_t beside(std::int64_t power) { return power + draws_.between(-1, 1); }

  Case small_case() {
    Case c = random_case(draws_);
    c.shape = {.batch = 1, .q_heads = 1, .kv_heads = 1, .q_tokens = 1, .kv_tokens = 1};
    c.shape.q_tokens = few_pairs_ ? 1 : draws_.between(1, 3);
    c.shape.head_dim = draws_.between(1, 3);
    c.shape.v_dim = draws_.chance(50) ? c.shape.head_dim : draws_.between(1, 3);
    c.mask = {};
    c.family = Family::heavy_key;
    c.ranks = std::min(c.ranks, 3);
    c.tile_queries = std::max<std::int64_t>(c.tile_queries, 32);
    c.tile_keys = std::max<std::int64_t>(c.tile_keys, 32);
    if (!draws_.chance(kPercentWithModifiers)) c.modifiers = {};
    return c;
  }

  void add(Case c, std::int8_t mask) {
    c.shape = as_taken(c.shape);
    c.mask = planned_mask(draws_, mask, c.shape);
    if (c.shape.q_tokens * c.shape.kv_tokens <= kMostDrawnPairs) keep(std::move(c));
  }
  Shape as_taken(Shape s) const {
    if (!can_.has(Ability::rectangular)) s.q_tokens = s.kv_tokens;
    return s;
  }
  void keep(Case c) {
    c.seed += round_ * kCaseSeeds;
    cases_.push_back(fitted(std::move(c)));
  }

  void add_keys(std::int64_t power, std::int8_t mask) {
    Case c = small_case();
    c.shape.kv_tokens = beside(power);
    if (!few_pairs_) c.shape.q_heads = c.shape.kv_heads = 2;
    if (draws_.chance(50)) c.shape.kv_tokens += draws_.below(power / 2);
    add(std::move(c), mask);
  }

  /// Keys whose scores or weights depend on their number.
  void add_modified_keys(std::int64_t power, ModifierKind kind) {
    Case c = small_case();
    c.modifiers = {};
    c.modifiers.set(kind, static_cast<double>(draws_.between(1, words_of(kind).most_drawn)));
    c.shape.kv_tokens = beside(power) + draws_.below(power / 2);
    c.shape.q_tokens = 1;
    if (kind == ModifierKind::alibi) c.shape.q_heads = c.shape.kv_heads = 3;
    add(std::move(c), 0);
  }

  void add_queries(std::int64_t power) {
    Case c = small_case();
    c.shape.q_tokens = beside(power);
    c.shape.kv_tokens = draws_.between(1, few_pairs_ ? 2 : 6);
    c.family = Family::normal;
    add(std::move(c), 0);
  }

  void add_heads(std::int64_t power) {
    constexpr std::int64_t kMostGroups = 3;
    Case c = small_case();
    Shape& s = c.shape;
    const bool in_batches = draws_.chance(50);
    s.kv_heads = in_batches ? draws_.between(1, 4) : 1;
    const std::int64_t group =
        can_.has(Ability::grouped_heads) ? draws_.between(1, kMostGroups) : 1;
    s.q_heads = s.kv_heads * group;
    if (in_batches) {
      s.batch = beside(power) / s.q_heads + 1;
    } else {
      s.kv_heads = beside(power) / group + 1;
      s.q_heads = s.kv_heads * group;
    }
    s.q_tokens = 1;
    s.kv_tokens = draws_.between(2, 3);
    c.family = Family::normal;
    add(std::move(c), 0);
  }

  /// As many documents; no more than a replay token should name.
  void add_documents(std::int64_t power) {
    constexpr std::int64_t kMost = 300;
    const auto documents = static_cast<std::size_t>(beside(power));
    if (power > kMost || !can_.masks.takes(DocumentsMask{})) return;
    Case c = small_case();
    DocumentsMask mask;
    for (std::size_t i = 0; i < documents; ++i) mask.lengths.push_back(draws_.between(1, 3));
    for (const std::int64_t length : mask.lengths) c.shape.kv_tokens += length;
    c.shape = as_taken(c.shape);
    c.mask = CaseMask({mask});
    keep(std::move(c));
  }

  const Capabilities& can_;
  std::uint64_t round_;
  bool few_pairs_;
  Draws draws_;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> far_cases(const Capabilities& can, bool few_pairs, std::uint64_t seed,
                            std::uint64_t round) {
  if (can.has(Ability::few_shapes)) return {};
  return FarSizes(can, seed, round, few_pairs).cases();
}

}  // namespace ringlab::verify
