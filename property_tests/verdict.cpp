// The laws that a verdict is about, and their totals. Programs that search in their own way need
// this and no RapidCheck.
#include "property_tests/verify.h"

namespace ringlab::verify {

void BoundCounts::add(const BoundCounts& more) {
  measured += more.measured;
  telling += more.telling;
  unbounded += more.unbounded;
  infinite += more.infinite;
}

double BoundCounts::unbounded_share() const {
  return measured == 0 ? 0 : static_cast<double>(unbounded) / static_cast<double>(measured);
}

bool LawFailure::is_absolute() const {
  return ending != Ending::answered || message.find(", exact ") != std::string::npos;
}

std::vector<const Law*> laws_for(const Subject& subject, const VerifyOptions& options) {
  std::vector<const Law*> laws;
  if (options.laws.empty()) {
    for (const Law& law : all_laws()) laws.push_back(&law);
    for (const Law& law : laws_about_others()) {
      if (subject.can.has(Ability::foreign)) laws.push_back(&law);
    }
  }
  for (const std::string& id : options.laws) laws.push_back(&find_law(id));
  return laws;
}

bool SubjectVerdict::passed() const {
  for (const LawVerdict& law : laws) {
    if (law.failure) return false;
  }
  return laws_passed() > 0;
}

int SubjectVerdict::laws_passed() const {
  int count = 0;
  for (const LawVerdict& law : laws) count += !law.failure && law.skipped.empty();
  return count;
}

BoundCounts SubjectVerdict::bounds() const {
  BoundCounts sum;
  for (const LawVerdict& law : laws) sum.add(law.bounds);
  return sum;
}

int SubjectVerdict::laws_skipped() const {
  int count = 0;
  for (const LawVerdict& law : laws) count += !law.skipped.empty();
  return count;
}

}  // namespace ringlab::verify
