// Errors of K and V by the wire between ranks, as far as error bounds are concerned.
#pragma once

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab {

/// The format in effect: exact where `format` is not narrower than `dtype`.
WireFormat effective_wire(WireFormat format, DType dtype);

/// The type of K and V on their way between ranks.
DType wire_dtype(WireFormat format, DType dtype);

/// `profile` of a kernel, fed with K and V that went over this wire. Unchanged where it is exact.
NumericsProfile wire_profile(NumericsProfile profile, WireFormat format, DType dtype);

}  // namespace ringlab
