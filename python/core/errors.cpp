#include "python/core/errors.h"

#include <nanobind/nanobind.h>

#include <string>

#include "reference/core/error.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "UsageError";
    case ErrorKind::input:
      return "InputError";
    default:
      return "RunError";
  }
}

nb::object exception_of(const Error& error, const char* name) {
  const ErrorParts& parts = error.parts();
  const nb::object type = nb::module_::import_("ringlab._errors").attr(name);
  return type(error.what(), nb::arg("where") = parts.where.c_str(),
              nb::arg("expected") = parts.expected.c_str(), nb::arg("found") = parts.actual.c_str(),
              nb::arg("hint") = parts.hint.c_str());
}

void raise(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const RankError& error) {
    const nb::object exception = exception_of(error, "RankError");
    exception.attr("rank") = error.failure().rank;
    exception.attr("suspect") = error.failure().suspect;
    exception.attr("step") = error.failure().step;
    raise(exception);
  } catch (const Error& error) {
    raise(exception_of(error, class_name(error.kind())));
  }
}

}  // namespace

void translate_errors() { nb::register_exception_translator(translate); }

}  // namespace ringlab::python
