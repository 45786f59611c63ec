#include "property_tests/diagnosis/insight.h"

#include <algorithm>

#include "property_tests/diagnosis/fingerprint.h"
#include "property_tests/diagnosis/matched_filters.h"
#include "property_tests/diagnosis/profiles/arithmetic.h"

namespace ringlab::verify {
namespace {

constexpr int kMostDiagnosed = 3;

/// True when `a` says more: one name is best, then several, then none.
bool says_more(const Diagnosis& a, const Diagnosis& b) {
  if (a.explains.empty() || b.explains.empty()) return b.explains.empty() && !a.explains.empty();
  return a.explains.size() < b.explains.size();
}

bool named_edit(const Diagnosis& diagnosis) {
  return diagnosis.explains.size() == 1 && !diagnosis.explains.front().id.starts_with("precision.");
}

/// The laws that are broken, those first whose failure shows by itself that an answer is wrong.
std::vector<const LawVerdict*> broken_laws(const SubjectVerdict& verdict) {
  std::vector<const LawVerdict*> broken;
  for (const LawVerdict& law : verdict.laws) {
    if (law.failure) broken.push_back(&law);
  }
  std::stable_partition(broken.begin(), broken.end(),
                        [](const LawVerdict* law) { return law->failure->is_absolute(); });
  return broken;
}

}  // namespace

// A few failures are enough: laws overlap, and the first that has one name ends the search.
Insight look_into(const Subject& subject, const SubjectVerdict& verdict,
                  const VerifyOptions& options, Depth depth, const SearchLaw& search) {
  Insight insight;
  int diagnosed = 0;
  const std::vector<const LawVerdict*> broken = broken_laws(verdict);
  for (const LawVerdict* law : broken) {
    if (diagnosed == kMostDiagnosed) break;
    ++diagnosed;
    Diagnosis diagnosis = diagnose(subject, find_law(law->id), law->failure->shrunk);
    if (diagnosed > 1 && !says_more(diagnosis, insight.diagnosis)) continue;
    insight.diagnosis = std::move(diagnosis);
    const bool leads = law->failure->is_absolute() == broken.front()->failure->is_absolute();
    if (leads) insight.of_law = law->id;
    if (insight.diagnosis.explains.size() == 1) break;
  }
  // An edit of the formula that explains all numbers is better than wider bounds.
  const bool is_edit = named_edit(insight.diagnosis);
  if (diagnosed > 0 && !is_edit) insight.passes_if = passes_if(subject, verdict, options, search);
  if (diagnosed > 0 || depth == Depth::failures) return insight;
  insight.warnings = filter_warnings(subject, options.seed);
  insight.remarks = wider_than_needed(subject, options.seed);
  return insight;
}

}  // namespace ringlab::verify
