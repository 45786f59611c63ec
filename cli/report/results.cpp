// Verdicts and totals of the results of one verification.
#include "cli/report/results.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "cli/report/human.h"
#include "cli/report/totals.h"

namespace ringlab::report {

bool SubjectResult::input_passed() const {
  return input_skipped.empty() && on_input.error.empty() && on_input.report.held();
}

bool SubjectResult::input_wrong() const {
  return input_skipped.empty() && (!on_input.error.empty() || !on_input.report.passed());
}

bool SubjectResult::input_is_unbounded() const {
  return input_skipped.empty() && !input_wrong() && !input_passed();
}

bool SubjectResult::wrong() const { return input_wrong() || laws_broken() > 0; }

bool SubjectResult::checked() const { return input_passed() || laws_held() > 0; }

std::string SubjectResult::verdict() const {
  if (wrong()) return "wrong";
  return passed() ? "pass" : "not checked";
}

double SubjectResult::worst_law_ratio() const {
  double worst = 0;
  for (const verify::LawVerdict& law : laws.laws)
    worst = std::max(worst, law.failure ? INFINITY : law.worst_ratio);
  return worst;
}

double SubjectResult::worst_ratio() const {
  return std::max(on_input.report.worst_ratio(), worst_law_ratio());
}

int SubjectResult::laws_held() const {
  return static_cast<int>(std::count_if(laws.laws.begin(), laws.laws.end(), [](const auto& law) {
    return law.skipped.empty() && !law.failure && law.cases > 0;
  }));
}

int SubjectResult::laws_broken() const {
  return static_cast<int>(std::count_if(laws.laws.begin(), laws.laws.end(),
                                        [](const auto& law) { return law.failure.has_value(); }));
}

int SubjectResult::laws_without_cases() const {
  return static_cast<int>(std::count_if(laws.laws.begin(), laws.laws.end(), [](const auto& law) {
    return law.skipped.empty() && !law.failure && law.cases == 0;
  }));
}

verify::BoundCounts SubjectResult::bounds() const {
  verify::BoundCounts sum = laws.bounds();
  for (const TensorReport& tensor : on_input.report.tensors) {
    sum.add({tensor.measured, tensor.telling, tensor.unbounded});
  }
  return sum;
}

std::string SubjectResult::input_text() const {
  if (!input_skipped.empty()) return "skipped";
  return on_input.error.empty() ? human_ratio(on_input.report.worst_ratio()) : "failed";
}

std::string SubjectResult::laws_text() const {
  const int broken = laws_broken();
  return broken > 0 ? std::to_string(broken) + " broken" : human_ratio(worst_law_ratio());
}

std::int64_t SubjectResult::sent_bytes() const { return totals_of(on_input.run).sent_bytes; }

std::int64_t SubjectResult::peak_bytes() const { return totals_of(on_input.run).peak_bytes; }

std::int64_t SubjectResult::peak_kv_bytes() const { return totals_of(on_input.run).peak_kv_bytes; }

bool VerifyRun::passed() const {
  return std::all_of(subjects.begin(), subjects.end(),
                     [](const SubjectResult& subject) { return subject.passed(); });
}

std::vector<std::string> VerifyRun::uncovered() const {
  std::vector<std::string> classes;
  for (const SubjectResult& subject : subjects) {
    for (const std::string& name : subject.coverage.missing()) {
      classes.push_back(subject.subject.name + ": " + name);
    }
  }
  return classes;
}

}  // namespace ringlab::report
