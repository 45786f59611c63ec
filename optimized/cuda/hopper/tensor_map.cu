// Tensor maps by the driver, whose function is looked up at run time: the program runs without a
// driver, too.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstring>
#include <string>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/hopper/descriptor.h"
#include "optimized/cuda/hopper/tensor_map.h"
#include "reference/core/error.h"

namespace ringlab::cuda {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

constexpr const char* kWhere = "tensor map";
constexpr unsigned kSinceVersion = 12000;

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  void* function = nullptr;
  auto found = cudaDriverEntryPointSymbolNotFound;
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSinceVersion,
                                              cudaEnableDefault, &found),
             "cudaGetDriverEntryPointByVersion", kWhere);
  if (found != cudaDriverEntryPointSuccess || !function) {
    throw MachineError({.where = kWhere,
                        .expected = "a driver for CUDA 12.0 or newer",
                        .actual = "one without cuTensorMapEncodeTiled",
                        .hint = "Update the NVIDIA driver, or use the portable kernels."});
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

CUtensorMapDataType type_of(DType type) {
  switch (type) {
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

}  // namespace

TensorMap make_tensor_map(const BoxedTensor& tensor) {
  check_boxed_tensor(tensor);
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
  // Innermost first; the innermost stride is the element's size and not given.
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(tensor.channels),
                               static_cast<cuuint64_t>(tensor.rows),
                               static_cast<cuuint64_t>(tensor.heads)};
  const cuuint64_t bytes = dtype_info(tensor.type).bytes;
  const cuuint64_t stride_bytes[2] = {sizes[0] * bytes, sizes[0] * sizes[1] * bytes};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(kBoxRowBytes / bytes),
                             static_cast<cuuint32_t>(tensor.box_rows), 1};
  const cuuint32_t element_strides[3] = {1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, type_of(tensor.type), 3, const_cast<void*>(tensor.base), sizes, stride_bytes,
             box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw_environment_error({.where = kWhere,
                             .expected = "success of cuTensorMapEncodeTiled",
                             .actual = "CUDA driver error " + std::to_string(status)});
  }
  TensorMap result;
  std::memcpy(&result, &map, sizeof(result));
  return result;
}

}  // namespace ringlab::cuda
