// Which kinds of cases a verification tried, and which it should have tried more often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// With fewer cases than this nothing is required: shares say too little.
inline constexpr std::int64_t kCasesForCoverage = 500;
/// A required class has at least this share of all cases.
inline constexpr double kLeastShare = 0.02;

struct ClassShare {
  std::string name;        ///< as of classes_of(): "mask causal", "more ranks than tokens", …
  std::int64_t cases = 0;  ///< that held; a case has several classes
  bool required = false;
};

struct Coverage {
  std::int64_t cases = 0;    ///< that held, over all laws
  std::int64_t refused = 0;  ///< that it claims to take and did not
  /// Required ones first, rarest first.
  std::vector<ClassShare> classes;
  bool is_judged = false;  ///< all laws were tried, on at least kCasesForCoverage cases
  Envelope tried = {};     ///< what the cases that held asked of the subject
  /// The claims that were never asked in a case that held.
  std::vector<std::string> not_tried = {};

  double share(const ClassShare& one) const;
  /// Required classes below kLeastShare; empty when it is not judged.
  std::vector<std::string> missing() const;
  /// True when it answered less than a third of what it claims to take: what held says little then.
  /// A kernel for causal masks, which has no way to claim no other, refuses about half.
  bool refuses_most() const { return refused > 2 * cases; }
};

/// What the laws that were not skipped covered; `options` says if those were all. A subject that
/// broke a law is not judged: its cases end there.
Coverage coverage_of(const Subject& subject, const SubjectVerdict& verdict,
                     const VerifyOptions& options);

/// The classes that the cases of a subject with these abilities have to reach: those that follow
/// from what it claims, and that are drawn for it.
std::vector<std::string> required_classes(const Capabilities& can);
/// The classes that some subject has to reach.
std::vector<std::string> all_classes();

}  // namespace ringlab::verify
