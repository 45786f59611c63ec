// What the way between ranks does to K and V, as far as error bounds are concerned.
#pragma once

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab {

/// The format in effect: exact where `format` is not narrower than `dtype`.
WireFormat effective_wire(WireFormat format, DType dtype);

/// What a number of K or V is on its way.
DType wire_dtype(WireFormat format, DType dtype);

/// `profile` of a kernel, fed with K and V that went over this wire. Unchanged where it is exact.
NumericsProfile wire_profile(NumericsProfile profile, WireFormat format, DType dtype);

}  // namespace ringlab
