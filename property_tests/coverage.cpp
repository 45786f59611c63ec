#include "property_tests/coverage.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "property_tests/generators/cases.h"
#include "property_tests/generators/masks.h"

namespace ringlab::verify {
namespace {

/// The least share of a class among random cases for which the class is required: a rarer class may
/// fall below kLeastShare by chance.
constexpr double kLeastDrawnShare = 1.2 * kLeastShare;

struct Requirement {
  bool stands;
  const char* name;
};

void require(std::vector<std::string>& classes, std::initializer_list<Requirement> requirements) {
  for (const Requirement& one : requirements) {
    if (one.stands) classes.emplace_back(one.name);
  }
}

void require_values(std::vector<std::string>& classes, const Capabilities& can) {
  for (int family = 0; family < kDrawnFamilies; ++family) {
    classes.push_back("values " + std::string(family_name(static_cast<Family>(family))));
  }
  for (const DType dtype : can.dtypes) {
    classes.push_back("dtype " + std::string(dtype_info(dtype).name));
  }
  require(classes, {{can.has(Ability::any_scale), "scale 1"}});
}

void require_masks(std::vector<std::string>& classes, const Capabilities& can) {
  if (can.masks.full) classes.emplace_back("mask full");
  for (const CaseTerm& term : blank_terms()) {
    const bool is_interval = std::visit([](const auto& known) { return known.kIsInterval; }, term);
    const bool takes =
        can.masks.kinds[term.index()] && (is_interval || can.has(Ability::bit_masks));
    if (takes) classes.push_back("mask " + std::string(word_of(term)));
  }
  // Causal and window masks have little in common, and random cases intersect them often enough.
  const bool two = can.masks.takes(CausalMask{}) && can.masks.takes(WindowMask{});
  require(classes, {{can.masks.intersections && two, "mask intersection"}});
}

void require_shapes(std::vector<std::string>& classes, const Capabilities& can) {
  require(classes, {{can.has(Ability::grouped_heads), "grouped heads"},
                    {can.has(Ability::rectangular), "rectangular"},
                    {can.has(Ability::other_v_dim), "v_dim is not head_dim"},
                    {can.has(Ability::no_tokens), "no tokens"},
                    {can.has(Ability::empty_rows), "rows that see nothing"},
                    {can.max_head_dim >= 33, "wide heads"},
                    {!can.has(Ability::foreign), "tile tails"},
                    {!can.has(Ability::foreign), "tiles as kernels have them"}});
}

void require_ranks(std::vector<std::string>& classes, const Capabilities& can) {
  if (!can.has(Ability::many_ranks)) return;
  const bool fetches_ahead = can.has(Ability::schedules) || can.has(Ability::prefetches);
  for (const ScheduleKind kind : kScheduleKinds) {
    if (can.has(Ability::schedules))
      classes.push_back("schedule " + std::string(schedule_word(kind)));
  }
  require(classes, {{true, "layout contiguous"},
                    {true, "layout striped"},
                    {true, "layout zigzag"},
                    {true, "one rank"},
                    {true, "more ranks than tokens"},
                    {true, "ranks do not divide tokens"},
                    {true, "transport threads"},
                    {true, "transport simulated"},
                    {true, "rendezvous sends"},
                    {can.has(Ability::ring_traffic), "backwards round the ring"},
                    {fetches_ahead, "slots 1"},
                    {fetches_ahead, "slots 2"},
                    {fetches_ahead, "slots 3"}});
}

void require_extras(std::vector<std::string>& classes, const Capabilities& can) {
  for (const ModifierKind kind : kModifierKinds) {
    if (can.modifiers.knows(kind)) classes.emplace_back(modifier_title(kind));
  }
  require(classes, {{can.has(Ability::backward), kGradientsClass}});
}

constexpr const char* kOfGradients = "gradients: ";

void add_pairs_not_met(const Capabilities& can, const PassEnvelope& pass, const char* prefix,
                       Coverage& coverage) {
  for (const ClassPair& pair : claimed_pairs(can)) {
    coverage.pairs_claimed.push_back(prefix + pair.words());
    if (!pass.meetings.has(pair)) coverage.pairs_not_met.push_back(coverage.pairs_claimed.back());
  }
}

std::vector<ClassShare> sorted_shares(const std::map<std::string, std::int64_t>& counts,
                                      const std::vector<std::string>& required) {
  std::vector<ClassShare> shares;
  for (const auto& [name, count] : counts) {
    // Required classes come first, the rarest of them foremost.
    const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    shares.push_back({name, count, is_required});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const ClassShare& a, const ClassShare& b) {
    return a.required != b.required ? a.required : a.cases < b.cases;
  });
  return shares;
}

}  // namespace

std::vector<std::string> required_classes(const Capabilities& can) {
  std::vector<std::string> classes;
  require_values(classes, can);
  require_masks(classes, can);
  require_shapes(classes, can);
  require_ranks(classes, can);
  // Only classes that random cases reach often enough are required. The claim alone makes no such
  // cases: with as many queries as keys, there may be no row that sees nothing.
  const std::map<std::string, double> drawn = drawn_shares(can);
  std::erase_if(classes, [&](const std::string& name) {
    const auto found = drawn.find(name);
    return found == drawn.end() || found->second < kLeastDrawnShare;
  });
  require_extras(classes, can);
  return classes;
}

std::vector<std::string> all_classes() {
  Capabilities everything;
  everything.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  everything.add({Ability::backward, Ability::schedules, Ability::ring_traffic});
  everything.modifiers = kAllModifiers;
  return required_classes(everything);
}

double Coverage::share(const ClassShare& one) const {
  return cases == 0 ? 0 : static_cast<double>(one.cases) / static_cast<double>(cases);
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> names;
  if (!is_judged) return names;
  for (const ClassShare& one : classes) {
    // The share, not the count: a long run must not make up for classes that it hardly ever meets.
    if (one.required && share(one) < kLeastShare) names.push_back(one.name);
  }
  for (const SizesAsUsed& one : as_used) {
    if (has_whole_plan && one.calls + one.open == 0) names.push_back(cell_words(one.cell));
  }
  return names;
}

std::vector<std::string> Coverage::open_sizes() const {
  std::vector<std::string> names;
  for (const SizesAsUsed& one : as_used) {
    if (one.is_open()) names.push_back(cell_words(one.cell));
  }
  return names;
}

Coverage coverage_of(const Subject& subject, const SubjectVerdict& verdict,
                     const VerifyOptions& options) {
  const std::vector<std::string> required = required_classes(subject.can);
  Coverage coverage;
  std::map<std::string, std::int64_t> counts;
  for (const std::string& name : required) counts[name] = 0;
  bool is_broken = false;
  Meetings open;
  for (const LawVerdict& law : verdict.laws) {
    coverage.cases += law.cases;
    coverage.refused += law.refused;
    coverage.tried.add(law.tried);
    open.add(law.open);
    is_broken |= law.failure.has_value();
    for (const auto& [name, count] : law.classes) counts[name] += count;
  }
  coverage.classes = sorted_shares(counts, required);
  const std::int64_t asked = coverage.cases + coverage.refused;
  // Shares are judged only where all laws ran to their ends on enough cases.
  coverage.is_judged = options.laws.empty() && !is_broken && asked >= kCasesForCoverage;
  add_pairs_not_met(subject.can, coverage.tried.forward, "", coverage);
  if (subject.can.has(Ability::backward)) {
    add_pairs_not_met(subject.can, coverage.tried.gradients, kOfGradients, coverage);
  }
  // The largest of these sizes are too much work for as many queries as keys.
  const bool is_possible =
      subject.can.has(Ability::rectangular) && !subject.can.has(Ability::few_shapes);
  const bool was_tried = std::ranges::any_of(verdict.laws, [](const LawVerdict& law) {
    return law.id == kAsUsedLaw && law.skipped.empty();
  });
  coverage.has_whole_plan = is_possible && was_tried && options.planned_apart == 1 &&
                            options.cases_per_law >= VerifyOptions().cases_per_law;
  for (const Meetings::Cell& cell : claimed_cells(subject.can)) {
    const Envelope& tried = coverage.tried;
    const auto calls = tried.forward.meetings.calls(cell) + tried.gradients.meetings.calls(cell);
    coverage.as_used.push_back({.cell = cell, .calls = calls, .open = open.calls(cell)});
  }
  coverage.not_tried = claimed_not_tried(subject.can, coverage.tried);
  return coverage;
}

std::string known_pair(const std::string& word) {
  const std::string_view prefix = word.starts_with(kOfGradients) ? kOfGradients : "";
  std::string given = word.substr(prefix.size());
  if (const auto at = given.find(" x "); at != std::string::npos) given.replace(at, 3, " × ");
  for (const ClassPair& pair : pairs_of(known_classes())) {
    const ClassPair turned{pair.second, pair.second_class, pair.first, pair.first_class};
    if (given == pair.words() || given == turned.words()) {
      return std::string(prefix) + pair.words();
    }
  }
  return "";
}

}  // namespace ringlab::verify
