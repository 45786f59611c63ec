// The laws on a function of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace ringlab::python {

/// verify(wishes), replay(wishes, token) and laws() for ringlab/_verify.py.
void add_verification(nanobind::module_& module);

}  // namespace ringlab::python
