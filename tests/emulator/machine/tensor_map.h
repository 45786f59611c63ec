// Tensor maps of the emulated GPU: plain fields in place of a GPU's opaque ones.
#pragma once

#include <cstdint>

#include "optimized/cuda/device_types.h"
#include "optimized/cuda/hopper/tensor_map.h"

namespace ringlab::cuda::emulator {

/// The fields of a TensorMap made here.
struct MapFields {
  std::uint64_t tag;
  std::byte* base;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t box_rows;
  std::int64_t element_bytes;
};

/// A map by the rules and with the errors of ringlab::cuda::make_tensor_map().
TensorMap make_tensor_map(const BoxedTensor& tensor);

/// Faults unless make_tensor_map() made it.
MapFields fields_of(const TensorMap& map);

/// A box of a tensor, by the place of its first element, which may be outside.
struct TensorBox {
  MapFields map;
  std::int64_t head;
  std::int64_t row;
  std::int64_t channel;
};

/// The element at (row, channel) of the box, or null where that is outside of the tensor.
std::byte* element_at(const TensorBox& box, std::int64_t row, std::int64_t channel);

}  // namespace ringlab::cuda::emulator
