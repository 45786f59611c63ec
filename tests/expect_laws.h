// Laws that a right subject keeps, for tests of subjects in any room.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// Tries the laws on a subject that is right: none is broken, each has cases or says why it has
/// none, and `least` of them hold.
inline SubjectVerdict expect_laws_kept(const Subject& subject, const VerifyOptions& options,
                                       int least) {
  SubjectVerdict verdict = verify_subject(subject, options);
  for (const LawVerdict& law : verdict.laws) {
    const std::string where = subject.name + ", " + law.id;
    EXPECT_FALSE(law.failure) << where << ": " << law.failure->message << "\n"
                              << law.failure->token;
    EXPECT_TRUE(law.cases > 0 || !law.skipped.empty()) << where;
  }
  EXPECT_GE(verdict.laws_passed(), least) << subject.name;
  return verdict;
}

}  // namespace ringlab::verify
