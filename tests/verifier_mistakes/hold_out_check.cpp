// hold_out_check SUBJECT CASES [SEED]: exits 1 when a law finds the subject wrong; with "oracle" as
// the subject, when the verifier finds itself wrong. For scripts/hold_out, which links it with
// mutants that nobody chose.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string>

#include "property_tests/verify.h"
#include "tests/verifier_mistakes/checks.h"

namespace {

using namespace ringlab::verify;

int found(const std::string& by, const std::string& what) {
  fmt::print("{}\t{}\n", by, what);
  return 1;
}

int check_subject(const std::string& name, const VerifyOptions& options) {
  const Subject subject = find_subject(name);
  for (const Law* law : laws_for(subject, options)) {
    const LawVerdict verdict = verify_law(subject, *law, options);
    if (verdict.failure) return found(law->id, verdict.failure->message);
  }
  return 0;
}

/// Self checks, then subjects that are right; one is enough to see a wrong oracle.
int check_oracle(const VerifyOptions& options) {
  for (const SelfCheck& check : self_checks()) {
    const std::string complaint = check.check();
    if (!complaint.empty()) return found("self check", check.name + ": " + complaint);
  }
  for (const char* name : {"online_softmax", "backward", "optimized"}) {
    if (check_subject(name, options) != 0) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string subject = words[1];
  VerifyOptions options;
  options.cases_per_law = std::atoi(words[2]);
  options.seed = count > 3 ? static_cast<std::uint64_t>(std::atoll(words[3])) : 1;
  options.shrink = false;
  try {
    return subject == "oracle" ? check_oracle(options) : check_subject(subject, options);
  } catch (const std::exception& error) {
    return found("exception", error.what());
  }
}
