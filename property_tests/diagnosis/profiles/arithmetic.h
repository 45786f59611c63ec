// Which known arithmetic a subject has that breaks its own promises: one that it could declare.
#pragma once

#include <string>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// "it passes if weights are rounded to the dtype of q before they meet v: declare …", where every
/// case that was broken holds under that declaration, and so do all cases of the broken laws that
/// `search` finds with `options`, those of the verdict, as far as a few seconds go. The narrowest such
/// declaration; empty where there is none, or where a failure is not one of numbers.
std::string passes_if(const Subject& subject, const SubjectVerdict& verdict,
                      const VerifyOptions& options, const SearchLaw& search);

}  // namespace ringlab::verify
