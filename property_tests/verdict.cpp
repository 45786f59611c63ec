// The laws that a verdict is about, and their totals. Programs that search in their own way need
// this and no RapidCheck.
#include "property_tests/verify.h"

namespace ringlab::verify {

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

int SubjectVerdict::laws_skipped() const {
  int count = 0;
  for (const LawVerdict& law : laws) count += !law.skipped.empty();
  return count;
}

}  // namespace ringlab::verify
