// Tensor maps: descriptions of a tensor and its boxes for load_box(), store_box() and add_box().
#pragma once

#include <cstdint>

#include "optimized/cuda/device_types.h"
#include "reference/core/dtype.h"

namespace ringlab::cuda {

/// A dense tensor (heads, rows, channels) of f16, bf16 or f32 in the device's memory, and boxes of
/// `box_rows` rows by 128 bytes: 64 channels, or 32 of f32. No size is 0; channels are a multiple
/// of 8, box_rows one up to 256; `base` is aligned to 16 bytes.
struct BoxedTensor {
  const void* base;
  DType type;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t channels;
  int box_rows;
};

/// A usage error unless the tensor obeys the limits of BoxedTensor.
void check_boxed_tensor(const BoxedTensor& tensor);

/// The map, for a kernel's __grid_constant__ parameter. An environment error where the driver knows
/// no tensor maps or refuses this one. (Where kernels are emulated: emulator::make_tensor_map().)
TensorMap make_tensor_map(const BoxedTensor& tensor);

}  // namespace ringlab::cuda
