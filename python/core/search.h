// Random cases against one law, made simpler when one breaks it.
//
// As verify_law() of property_tests does with RapidCheck, from the same generator and by the same
// steps: RapidCheck's library cannot be part of a shared object (docs/decisions/0023).
#pragma once

#include <functional>

#include "property_tests/verify.h"

namespace ringlab::python {

/// `is_over` ends the search early; what was found until then stands.
verify::LawVerdict search_law(const verify::Subject& subject, const verify::Law& law,
                              const verify::VerifyOptions& options,
                              const std::function<bool()>& is_over);

}  // namespace ringlab::python
