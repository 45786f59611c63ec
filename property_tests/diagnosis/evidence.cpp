#include "property_tests/diagnosis/evidence.h"

#include <algorithm>
#include <exception>

#include "property_tests/generators/cases.h"
#include "property_tests/generators/masks.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {
namespace {

struct Size {
  std::int64_t queries, keys;
  int ranks;
};

Case sized(Case c, const Size& size) {
  c.shape.q_tokens = size.queries;
  c.shape.kv_tokens = size.keys;
  c.ranks = size.ranks;
  c.shape.head_dim = std::max<std::int64_t>(c.shape.head_dim, 4);
  c.shape.v_dim = std::max<std::int64_t>(c.shape.v_dim, 3);
  c.tile_queries = c.tile_keys = 4;
  return c;
}

Case with_family(Case c, Family family) {
  c.family = family;
  return c;
}

Case with_mask(Case c, const CaseMask& mask) {
  c.mask = mask;
  return c;
}

Case with_layout(Case c, LayoutKind layout) {
  c.layout = layout;
  return c;
}

/// Chunks that travel the other way.
Case turned(Case c) {
  c.direction = c.direction == RingDirection::next ? RingDirection::previous : RingDirection::next;
  return c;
}

Case with_heads(Case c, std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads) {
  c.shape.batch = batch;
  c.shape.q_heads = q_heads;
  c.shape.kv_heads = kv_heads;
  return c;
}

/// The failing case with other values and sizes, and with one of its modifiers at a time.
std::vector<Case> like(const Case& failing) {
  const int several = failing.ranks > 1 ? 3 : 1;
  const Case larger = sized(failing, {12, 12, several});
  std::vector<Case> cases = {with_family(failing, Family::normal),
                             with_family(larger, Family::normal),
                             with_family(larger, Family::late_maximum),
                             larger,
                             with_family(sized(failing, {7, 10, failing.ranks}), Family::normal),
                             with_family(sized(failing, {9, 13, several + 1}), Family::normal),
                             with_family(sized(failing, {12, 12, 2 * several}), Family::normal)};
  for (const ModifierKind kind : kModifierKinds) {
    CaseModifiers one;
    one.set(kind, failing.modifiers.level(kind));
    if (!one.any()) continue;
    Case c = with_heads(cases[1], 2, 4, 2);
    c.modifiers = one;
    cases.push_back(c);
    c.mask = "causal";
    c.shape.q_tokens = 15;  // the first queries see nothing
    cases.push_back(c);
    c.shape.q_tokens = 6;
    cases.push_back(c);
  }
  return cases;
}

/// Plain cases, which differ in one thing at a time.
std::vector<Case> plain(const Case& failing) {
  Case base = sized(failing, {12, 12, 1});
  base.family = Family::normal;
  base.mask = "full";
  base.modifiers = {};
  base.layout = LayoutKind::contiguous;
  base.scale = ScaleKind::rsqrt;
  const Case ring = sized(base, {12, 12, 3});
  Case wide = base;
  wide.shape.head_dim = 7;
  wide.shape.v_dim = 5;
  wide.tile_keys = 16;
  Case wider = base;  // whole vectors of 64 channels, and fewer and fewer: 62, 30, 14, 6
  wider.shape.head_dim = 126;
  wider.shape.v_dim = 127;
  Case unscaled = base;
  unscaled.scale = ScaleKind::unit;
  const Case causal = with_mask(ring, "causal");
  return {base,
          ring,
          wide,
          wider,
          unscaled,
          with_mask(base, "causal"),
          with_heads(base, 2, 4, 2),
          with_heads(ring, 2, 6, 3),
          with_family(base, Family::late_maximum),
          with_family(base, Family::huge_gaps),
          with_family(base, Family::common_shift),
          with_family(ring, Family::late_maximum),
          with_family(ring, Family::huge_gaps),
          sized(ring, {13, 13, 4}),
          sized(ring, {16, 16, 2}),
          causal,
          sized(causal, {16, 16, 4}),
          sized(causal, {12, 12, 6}),
          with_layout(causal, LayoutKind::zigzag),
          with_layout(causal, LayoutKind::striped),
          with_layout(sized(causal, {14, 14, 4}), LayoutKind::zigzag),
          with_mask(sized(base, {15, 11, 1}), "causal"),
          with_mask(sized(base, {6, 11, 1}), "causal"),
          with_mask(base, "window:2,1"),
          with_mask(ring, "window:3,0"),
          with_mask(sized(ring, {12, 12, 5}), "window:2,2"),
          turned(sized(causal, {15, 15, 5})),
          with_mask(base, "documents:5,4,3"),
          with_mask(ring, "documents:2,6,4"),
          with_mask(base, "prefix:4"),
          with_mask(base, "bits:3")};
}

bool same_values(const Tensor<double>& a, const Tensor<double>& b) {
  return a.values() == b.values();
}

}  // namespace

std::vector<Case> evidence_cases(const Case& failing, const Capabilities& can) {
  std::vector<Case> cases = {failing};
  std::uint64_t seed = failing.seed;
  for (const auto& group : {like(failing), plain(failing)}) {
    for (Case c : group) {
      c.seed = ++seed;
      c.transport = TransportKind::simulated;  // the same numbers every time, in whatever order
      if (schedule_traits(c.schedule).has_nodes) c.node_ranks = 1 + static_cast<int>(seed % 3);
      c = fitted(limited_to(fitted(std::move(c)), can));
      if (std::ranges::find(cases, c) == cases.end()) cases.push_back(std::move(c));
    }
  }
  return cases;
}

// Cases longer than most of the evidence, which may lack the very thing that a mistake is about.
std::vector<Case> confirming_cases(const Case& failing, const Capabilities& can) {
  constexpr std::int64_t kConfirmingStream = -7;
  constexpr int kCases = 8;
  std::vector<Case> cases;
  for (int n = 0; n < kCases; ++n) {
    Draws draws(failing.seed, {kConfirmingStream, n});
    Case c = failing;
    c.seed += 1000 + static_cast<std::uint64_t>(n);
    c.family = Family::normal;
    if (n % 2 == 0) {
      c.shape.q_tokens = draws.between(17, 40);
      c.shape.kv_tokens = draws.between(17, 100);
    }
    c.mask = redrawn(c.mask, draws, c.shape);
    c.transport = TransportKind::simulated;
    cases.push_back(fitted(limited_to(fitted(std::move(c)), can)));
  }
  return cases;
}

std::optional<Evidence> forward_evidence(const Subject& subject, const Case& c) {
  try {
    Trial trial = make_trial(c);
    const Trial given = trial;
    const NumericsProfile profile = subject.profile(trial.problem, trial.options);
    AttentionOutput got = attend(subject, given);
    const bool kept = same_values(given.data.q, trial.data.q) &&
                      same_values(given.data.k, trial.data.k) &&
                      same_values(given.data.v, trial.data.v);
    Evidence evidence{c, {std::move(trial), profile}, std::move(got), {}, !kept, false};
    evidence.truth = finish(evidence.scene.right);
    const LseCompared lse = subject.can.has(Ability::lse) ? LseCompared::yes : LseCompared::no;
    evidence.wrong = !agrees(evidence.truth, evidence.got, lse);
    return evidence;
  } catch (const std::exception&) {
    return std::nullopt;  // the laws report crashes
  }
}

}  // namespace ringlab::verify
