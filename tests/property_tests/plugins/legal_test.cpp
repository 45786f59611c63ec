// Kernels that are right, whatever is unusual about them: no law fails, and no kind of case is
// missed that such a kernel cannot be given.
#include <gmock/gmock.h>

#include <cstdlib>

#include "property_tests/coverage.h"
#include "property_tests/verify.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/plugins/plugin_folder.h"

namespace ringlab::verify {
namespace {

using ::testing::IsEmpty;

class LegalPlugin : public ::testing::TestWithParam<const char*> {};

TEST_P(LegalPlugin, passes_every_law_and_misses_no_class) {
  setenv("RINGLAB_TEST_KERNEL", GetParam(), 1);
  const Subject subject = plugin_named("legal");
  const VerifyOptions options{.cases_per_law = 10};
  const SubjectVerdict verdict = expect_laws_kept(subject, options, 15);
  EXPECT_THAT(coverage_of(subject, verdict, options).missing(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Arithmetic, LegalPlugin,
                         ::testing::Values("merging", "any_order", "compensated", "backwards",
                                           "coarse", "coarse_parts"));
INSTANTIATE_TEST_SUITE_P(Abilities, LegalPlugin,
                         ::testing::Values("wide", "one_width", "square", "causal_square",
                                           "least"));

}  // namespace
}  // namespace ringlab::verify
