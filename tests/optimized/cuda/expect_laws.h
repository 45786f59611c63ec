// What tests on stand-ins for devices expect of a verification.
#pragma once

#include <gtest/gtest.h>

#include "property_tests/verify.h"

namespace ringlab::cuda {

/// No law is broken; each that is, is told with its case.
inline void expect_no_law_broken(const verify::SubjectVerdict& verdict) {
  for (const verify::LawVerdict& law : verdict.laws) {
    EXPECT_FALSE(law.failure) << law.id << " " << law.name << ": "
                              << (law.failure ? law.failure->message + "\n" + law.failure->token
                                              : "");
  }
}

}  // namespace ringlab::cuda
