// Attention on the caller's arrays, computed by the exact reference, the engine or a stage.
#pragma once

#include <nanobind/nanobind.h>

namespace ringlab::python {

/// `arrays` holds q, k, v and perhaps dout; `wishes` what wishes.h says, and "subject",
/// "with_error", "numpy" (what the results are for) and "bf16" (16-bit integers are its bits).
/// Results by name: o, lse, with dout dq, dk, dv, in the dtype of q (lse f32, f64 for f64); with
/// "with_error" all in f64, and o_error, lse_error, … besides. Works without the GIL.
nanobind::dict attention(const nanobind::dict& arrays, const nanobind::dict& wishes);

/// The functions of this file and what they need, in the module.
void add_attention(nanobind::module_& module);

}  // namespace ringlab::python
