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
  std::int64_t cases = 0;  ///< that held, over all laws
  /// Required ones first, rarest first.
  std::vector<ClassShare> classes;
  bool is_judged = false;  ///< all laws were tried, on at least kCasesForCoverage cases

  double share(const ClassShare& one) const;
  /// Required classes below kLeastShare; empty when it is not judged.
  std::vector<std::string> missing() const;
};

/// What the laws that were not skipped covered; `options` says if those were all. A subject that
/// broke a law is not judged: its cases end there.
Coverage coverage_of(const Subject& subject, const SubjectVerdict& verdict,
                     const VerifyOptions& options);

/// The classes that the cases of a subject with these abilities have to reach: those that follow
/// from what it claims, and that are drawn for it.
std::vector<std::string> required_classes(const Capabilities& can);

}  // namespace ringlab::verify
