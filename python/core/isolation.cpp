#include "python/core/isolation.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/plugins/child_process.h"
#include "property_tests/plugins/confinement.h"
#include "property_tests/plugins/environment.h"
#include "python/core/arrays.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using plugins::ChildProcess;

/// As os.fork() does, which warns of threads: those are why_not_isolated()'s.
pid_t fork_python() {
  PyOS_BeforeFork();
  const pid_t process = fork();
  if (process == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return process;
}

/// The walls that are missing, and variables of the environment that Python has yet to hear of.
std::pair<std::string, std::map<std::string, std::string>> confine_here(
    std::int64_t private_bytes, const std::vector<std::string>& readable,
    const std::vector<std::string>& listed) {
  const std::string missing = plugins::confine({.private_bytes = private_bytes,
                                                .processes = plugins::Processes::allowed,
                                                .files = {.readable = readable, .listed = listed}});
  std::map<std::string, std::string> changed;
  for (const char* name : plugins::kScratchVariables) {
    if (const char* value = std::getenv(name)) changed[name] = value;
  }
  return {missing, changed};
}

/// A result of a function as an array of NumPy, of the same type and in one piece.
nb::object as_numpy(const std::string& name, nb::handle given) {
  const GivenArray array = checked_array(name, given, DType::bf16);
  return with_element_type(array.dtype, [&](auto element) {
    using Element = decltype(element);
    return handed_over(dense_copy<Element>(array.view<Element>()), Receiver::numpy);
  });
}

}  // namespace

void add_isolation(nb::module_& module) {
  nb::class_<ChildProcess>(module, "Child")
      .def("__init__", [](ChildProcess* self) { new (self) ChildProcess(fork_python); })
      .def_prop_ro("is_parent", &ChildProcess::is_parent)
      .def_prop_ro("socket", &ChildProcess::socket)
      .def("end", &ChildProcess::end, nb::call_guard<nb::gil_scoped_release>())
      .def("last_lines", &ChildProcess::last_lines)
      .def("clear_lines", &ChildProcess::clear_lines);
  module.attr("CHILD_SOCKET") = plugins::kSocket;
  module.def("clear_environment", &plugins::clear_environment);
  module.def("confine", &confine_here);
  module.def("as_numpy", &as_numpy);
}

}  // namespace ringlab::python
