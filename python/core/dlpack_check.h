// DLPack's description of somebody else's array, checked before we read through it. No Python here,
// so that it can be fuzzed.
#pragma once

#include <cstdint>
#include <string>

#include "reference/core/dtype.h"
#include "reference/core/tensor.h"

namespace ringlab::python {

/// DLPack's structures as its standard lays them out in memory (dlpack.h 1.x).
struct DlDevice {
  std::int32_t type = 0;
  std::int32_t id = 0;
};
struct DlType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 0;
};
struct DlTensor {
  void* data = nullptr;
  DlDevice device;
  std::int32_t ndim = 0;
  DlType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: dense, channels fastest
  std::uint64_t byte_offset = 0;    ///< of element (0, 0, 0, 0) from data
};
/// The structure that a capsule "dltensor" points to.
struct DlManagedTensor {
  DlTensor tensor;
  void* manager = nullptr;
  void (*deleter)(DlManagedTensor*) = nullptr;
};
/// The structure that a capsule "dltensor_versioned" points to. In another major version only the
/// first four fields are known to be there.
struct DlManagedTensorVersioned {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  void* manager = nullptr;
  void (*deleter)(DlManagedTensorVersioned*) = nullptr;
  std::uint64_t flags = 0;  ///< bit 0: read-only, which is all we do
  DlTensor tensor;
};
static_assert(sizeof(DlTensor) == 48 && sizeof(DlManagedTensorVersioned) == 80);

/// An array that can be read: every element lies in the address space, aligned. Only its owner
/// knows whether all of it is allocated.
struct CheckedDlTensor {
  const void* first = nullptr;  ///< element (0, 0, 0, 0); null for arrays without elements
  DType dtype = DType::f32;
  Extents extents;
  Strides strides;  ///< dense for arrays without elements
};

/// Input error naming the array unless it is on the CPU, of f64, f32, f16 or bf16 in one lane, with
/// four extents of a product below 2^59. 16-bit unsigned integers are bf16 with bits_as == bf16.
CheckedDlTensor checked_dltensor(const std::string& name, const DlTensor& tensor, DType bits_as);

/// Input error for another major version: its fields may lie elsewhere.
void check_dlpack_version(const std::string& name, const DlManagedTensorVersioned& managed);

}  // namespace ringlab::python
