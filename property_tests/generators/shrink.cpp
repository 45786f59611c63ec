// Cases that are one step simpler than a case.
#include <algorithm>
#include <functional>

#include "property_tests/generators/cases.h"
#include "property_tests/generators/masks.h"

namespace ringlab::verify {
namespace {

using Change = std::function<void(Case&, std::int64_t)>;

/// The cases one step simpler than one; a step that makes no case simpler is dropped, so that
/// shrinking ends.
class Simplifier {
 public:
  explicit Simplifier(const Case& c) : original_(c) {}

  /// Keeps the change when it makes the case simpler.
  void offer(const std::function<void(Case&)>& change) {
    Case c = original_;
    change(c);
    c = fitted(c);
    if (complexity(c) < complexity(original_)) cases_.push_back(std::move(c));
  }

  void offer_smaller(std::int64_t value, std::int64_t least, const Change& change) {
    for (const std::int64_t next : smaller(value, least)) {
      offer([&](Case& c) { change(c, next); });
    }
  }

  std::vector<Case> take() { return std::move(cases_); }

 private:
  Case original_;
  std::vector<Case> cases_;
};

void offer_simpler_mask(Simplifier& simplifier, const Case& original) {
  for (const CaseMask& mask : simpler_masks(original.mask)) {
    simplifier.offer([&](Case& c) { c.mask = mask; });
  }
}

void offer_fewer_modifiers(Simplifier& simplifier) {
  simplifier.offer([](Case& c) { c.modifiers = {}; });
  for (auto kind = kModifierKinds.rbegin(); kind != kModifierKinds.rend(); ++kind) {
    simplifier.offer([&](Case& c) { c.modifiers.set(*kind, 0); });
  }
}

void offer_simpler_run(Simplifier& simplifier, const Case& original) {
  // First the transport: a hang that the simulator finds too is found there at once.
  simplifier.offer([](Case& c) { c.transport = TransportKind::simulated; });
  simplifier.offer([](Case& c) { c.delay_seed = 0; });
  simplifier.offer_smaller(original.ranks, 1,
                           [](Case& c, std::int64_t next) { c.ranks = static_cast<int>(next); });
  simplifier.offer([](Case& c) { c.layout = LayoutKind::contiguous; });
  simplifier.offer([](Case& c) { c.direction = RingDirection::next; });
  simplifier.offer([](Case& c) { c.rendezvous = false; });
  simplifier.offer([](Case& c) {
    c.schedule = ScheduleKind::ring;
    c.node_ranks = 1;
  });
  simplifier.offer([](Case& c) { c.slots = 2; });
  simplifier.offer_smaller(original.threads, 1,
                           [](Case& c, std::int64_t n) { c.threads = static_cast<int>(n); });
}

void offer_smaller_shape(Simplifier& simplifier, const Case& original) {
  const Shape& s = original.shape;
  simplifier.offer_smaller(s.batch, 1, [](Case& c, std::int64_t n) { c.shape.batch = n; });
  simplifier.offer_smaller(s.kv_heads, 1, [](Case& c, std::int64_t n) {
    c.shape.q_heads = c.shape.q_heads / c.shape.kv_heads * n;
    c.shape.kv_heads = n;
  });
  simplifier.offer_smaller(s.q_heads / s.kv_heads, 1,
                           [](Case& c, std::int64_t n) { c.shape.q_heads = c.shape.kv_heads * n; });
  if (s.q_tokens == s.kv_tokens) {
    simplifier.offer_smaller(
        s.q_tokens, 0, [](Case& c, std::int64_t n) { c.shape.q_tokens = c.shape.kv_tokens = n; });
  }
  simplifier.offer_smaller(s.q_tokens, 0, [](Case& c, std::int64_t n) { c.shape.q_tokens = n; });
  simplifier.offer_smaller(s.kv_tokens, 0, [](Case& c, std::int64_t n) { c.shape.kv_tokens = n; });
  simplifier.offer_smaller(s.head_dim, 1, [](Case& c, std::int64_t n) { c.shape.head_dim = n; });
  simplifier.offer_smaller(s.v_dim, 1, [](Case& c, std::int64_t n) { c.shape.v_dim = n; });
}

/// Values whose sums are exact come first: then a failure is no matter of rounding.
void offer_simpler_values(Simplifier& simplifier, const Case& original) {
  for (const Family family : {Family::small_ints, Family::normal}) {
    simplifier.offer([&](Case& c) { c.family = family; });
  }
  simplifier.offer([](Case& c) { c.dtype = DType::f32; });
  simplifier.offer([](Case& c) { c.scale = ScaleKind::unit; });
  simplifier.offer([](Case& c) { c.scale = ScaleKind::rsqrt; });
  simplifier.offer_smaller(original.tile_queries, 1,
                           [](Case& c, std::int64_t n) { c.tile_queries = n; });
  simplifier.offer_smaller(original.tile_keys, 1, [](Case& c, std::int64_t n) { c.tile_keys = n; });
}

std::int64_t scale_complexity(ScaleKind scale) {
  if (scale == ScaleKind::unit) return 0;
  return scale == ScaleKind::rsqrt ? 1 : 2;
}

std::int64_t family_complexity(Family family) {
  if (family == Family::small_ints) return 0;
  return family == Family::normal ? 2 : 4;
}

}  // namespace

// Each step of simpler_cases() lowers this sum. Sizes weigh most: a small case says more than a
// plain one.
std::int64_t complexity(const Case& c) {
  const Shape& s = c.shape;
  std::int64_t sum = 4 * (s.batch + s.q_heads + s.kv_heads + c.ranks + s.q_tokens + s.kv_tokens +
                          s.head_dim + s.v_dim);
  sum += c.tile_queries + c.tile_keys + complexity(c.mask) + family_complexity(c.family);
  sum += c.dtype == DType::f32 ? 0 : 2;
  sum += c.layout == LayoutKind::contiguous ? 0 : 2;
  sum += c.schedule == ScheduleKind::ring ? 0 : 3;
  sum += c.slots == 2 ? 0 : 1;
  sum += c.threads - 1;
  for (const ModifierKind kind : kModifierKinds) sum += c.modifiers.level(kind) != 0 ? 3 : 0;
  sum += c.transport == TransportKind::simulated ? 0 : 2;
  return sum + (c.delay_seed != 0) + scale_complexity(c.scale) + c.rendezvous +
         (c.direction == RingDirection::previous);
}

std::vector<Case> simpler_cases(const Case& c) {
  Simplifier simplifier(c);
  offer_fewer_modifiers(simplifier);
  offer_simpler_run(simplifier, c);
  offer_smaller_shape(simplifier, c);
  offer_simpler_mask(simplifier, c);
  offer_simpler_values(simplifier, c);
  return simplifier.take();
}

}  // namespace ringlab::verify
