// Known arithmetics that a subject could declare in place of the promises that it breaks.
#pragma once

#include <string>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// The narrowest declaration that helps: "it passes if weights are rounded to the dtype of q before
/// they meet v: declare …". Every broken case holds under it, and so do the cases that `search`
/// makes of the broken laws with `options`, as for the verdict, as far as a few seconds go. Empty
/// without such a declaration, or where a law failed by a throw, a crash or a timeout.
std::string passes_if(const Subject& subject, const SubjectVerdict& verdict,
                      const VerifyOptions& options, const SearchLaw& search);

}  // namespace ringlab::verify
