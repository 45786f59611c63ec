#include "reference/core/wire_profile.h"

namespace ringlab {
namespace {

DType narrow_dtype(WireFormat format, DType dtype) {
  switch (format) {
    case WireFormat::exact:
      return dtype;
    case WireFormat::f32:
      return DType::f32;
    case WireFormat::bf16:
      return DType::bf16;
    case WireFormat::fp8:
      return DType::fp8_e4m3;
  }
  return dtype;
}

}  // namespace

WireFormat effective_wire(WireFormat format, DType dtype) {
  const bool narrower = dtype_info(narrow_dtype(format, dtype)).bytes < dtype_info(dtype).bytes;
  return narrower ? format : WireFormat::exact;
}

DType wire_dtype(WireFormat format, DType dtype) {
  return narrow_dtype(effective_wire(format, dtype), dtype);
}

NumericsProfile wire_profile(NumericsProfile profile, WireFormat format, DType dtype) {
  const WireFormat effective = effective_wire(format, dtype);
  if (effective == WireFormat::exact) return profile;
  const DTypeInfo& info = dtype_info(wire_dtype(format, dtype));
  profile.u_wire = info.unit_roundoff;
  if (effective == WireFormat::fp8) {
    // Half the least subnormal, times a scale of less than 2 absmax / 448.
    profile.wire_floor = info.min_subnormal / info.max_finite * (1 + 0x1p-50);
  } else {
    profile.wire_underflow = info.min_subnormal / 2;
    profile.wire_max = info.max_finite;
  }
  return profile;
}

}  // namespace ringlab
