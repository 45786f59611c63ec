#include "optimized/cuda/emulator/tensor_map.h"

#include <cstring>

#include "optimized/cuda/emulator/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr std::uint64_t kTag = 0x70616d20656c6974u;

}  // namespace

TensorMap make_tensor_map(const BoxedTensor& tensor) {
  check_boxed_tensor(tensor);
  const MapFields fields{.tag = kTag,
                         .base = static_cast<const std::byte*>(tensor.base),
                         .heads = tensor.heads,
                         .rows = tensor.rows,
                         .channels = tensor.channels,
                         .box_rows = tensor.box_rows};
  TensorMap map{};
  static_assert(sizeof(fields) <= sizeof(map));
  std::memcpy(map.opaque, &fields, sizeof(fields));
  return map;
}

MapFields fields_of(const TensorMap& map) {
  MapFields fields;
  std::memcpy(&fields, map.opaque, sizeof(fields));
  if (fields.tag != kTag) fault("load_box(): this is no tensor map of the emulated GPU");
  return fields;
}

}  // namespace ringlab::cuda::emulator
