// Tensor maps of the emulated GPU: plain fields where a GPU has its own.
#pragma once

#include <cstdint>

#include "optimized/cuda/device_types.h"
#include "optimized/cuda/hopper/tensor_map.h"

namespace ringlab::cuda::emulator {

/// The fields that load_box() reads of a TensorMap made here.
struct MapFields {
  std::uint64_t tag;
  const std::byte* base;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t box_rows;
};

/// A map by the rules and with the errors of ringlab::cuda::make_tensor_map().
TensorMap make_tensor_map(const BoxedTensor& tensor);

/// Faults unless make_tensor_map() made it.
MapFields fields_of(const TensorMap& map);

}  // namespace ringlab::cuda::emulator
