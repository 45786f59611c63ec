// Stands in for the filter of system calls where libseccomp was not found.
#include "property_tests/plugins/system_calls.h"

namespace ringlab::plugins {

bool refuse_system_calls(const RefusedCalls&) { return false; }

}  // namespace ringlab::plugins
