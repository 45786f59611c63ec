// A function of Python as a subject of the verification engine.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <optional>

#include "property_tests/subject.h"
#include "python/core/wishes.h"

namespace ringlab::python {

/// A reason to end a verification before its laws are through: its time, or an exception that is no
/// verdict (KeyboardInterrupt). From then on every run throws verify::Unsupported.
struct VerifyStop {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  std::optional<nanobind::python_error> interruption = {};
  bool is_due() const;
};

/// "name"; "call", the function of ringlab/_callable.py; "dtypes"; "limits", by the names of
/// verify::Ability and verify::MaskAbilities; "profile", by those of the plugin interface.
/// The subject's run takes the GIL; it must be destroyed with the GIL held.
verify::Subject callable_subject(const Wishes& wishes, const std::shared_ptr<VerifyStop>& stop);

}  // namespace ringlab::python
