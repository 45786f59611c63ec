// A copy of this process behind walls, for functions of others.
#pragma once

#include <nanobind/nanobind.h>

namespace ringlab::python {

/// Child and confine() for ringlab/_isolated.py.
void add_isolation(nanobind::module_& module);

}  // namespace ringlab::python
