#include <fmt/format.h>

#include "optimized/cuda/hopper/tensor_map.h"
#include "reference/core/error.h"

namespace ringlab::cuda {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;         // coordinates are 32-bit
constexpr std::int64_t kMaxHeadBytes = (std::int64_t{1} << 40);  // strides are below

void check_sizes(const BoxedTensor& tensor) {
  const bool fits = tensor.heads > 0 && tensor.rows > 0 && tensor.channels > 0 &&
                    tensor.heads < kMaxSize && tensor.rows < kMaxSize && tensor.channels % 8 == 0 &&
                    tensor.rows < kMaxHeadBytes / 4 / tensor.channels;
  if (fits) return;
  throw_usage_error({.where = "tensor map",
                     .expected = "sizes from 1 to 2^31 - 1, channels a multiple of 8",
                     .actual = fmt::format("{} heads, {} rows, {} channels", tensor.heads,
                                           tensor.rows, tensor.channels),
                     .hint = "There is nothing to load from an empty tensor: skip the launch."});
}

}  // namespace

void check_boxed_tensor(const BoxedTensor& tensor) {
  check_sizes(tensor);
  if (tensor.type != DType::f16 && tensor.type != DType::bf16 && tensor.type != DType::f32) {
    throw_usage_error({.where = "tensor map",
                       .expected = "f16, bf16 or f32",
                       .actual = std::string(dtype_info(tensor.type).name)});
  }
  if (tensor.box_rows < 8 || tensor.box_rows > 256 || tensor.box_rows % 8 != 0) {
    throw_usage_error({.where = "tensor map",
                       .expected = "boxes of 8, 16, … or 256 rows",
                       .actual = fmt::format("{} rows", tensor.box_rows)});
  }
  if (!tensor.base || reinterpret_cast<std::uintptr_t>(tensor.base) % 16 != 0) {
    throw_usage_error({.where = "tensor map",
                       .expected = "a tensor aligned to 16 bytes",
                       .actual = fmt::format("address {}", tensor.base)});
  }
}

}  // namespace ringlab::cuda
