// The compiled half of the Python package. Only ringlab/*.py calls its functions.
#include <nanobind/nanobind.h>

#include "python/core/attention.h"
#include "python/core/errors.h"
#include "python/core/isolation.h"
#include "python/core/verification.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  ringlab::python::translate_errors();
  module.attr("version") = RINGLAB_VERSION;
  ringlab::python::add_attention(module);
  ringlab::python::add_isolation(module);
  ringlab::python::add_verification(module);
}
