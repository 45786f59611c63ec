#include "tests/emulator/machine/tensor_map.h"

#include <cstring>

#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr std::uint64_t kTag = 0x70616d20656c6974u;

}  // namespace

TensorMap make_tensor_map(const BoxedTensor& tensor) {
  check_boxed_tensor(tensor);
  const MapFields fields{.tag = kTag,
                         .base = static_cast<std::byte*>(const_cast<void*>(tensor.base)),
                         .heads = tensor.heads,
                         .rows = tensor.rows,
                         .channels = tensor.channels,
                         .box_rows = tensor.box_rows,
                         .element_bytes = static_cast<std::int64_t>(dtype_info(tensor.type).bytes)};
  TensorMap map{};
  static_assert(sizeof(fields) <= sizeof(map));
  std::memcpy(map.opaque, &fields, sizeof(fields));
  return map;
}

MapFields fields_of(const TensorMap& map) {
  MapFields fields;
  std::memcpy(&fields, map.opaque, sizeof(fields));
  if (fields.tag != kTag) fault("this is no tensor map of the emulated GPU");
  return fields;
}

std::byte* element_at(const TensorBox& box, std::int64_t row, std::int64_t channel) {
  row += box.row;
  channel += box.channel;
  const bool inside = box.head >= 0 && box.head < box.map.heads && row >= 0 && row < box.map.rows &&
                      channel >= 0 && channel < box.map.channels;
  if (!inside) return nullptr;
  const std::int64_t index = (box.head * box.map.rows + row) * box.map.channels + channel;
  return box.map.base + box.map.element_bytes * index;
}

}  // namespace ringlab::cuda::emulator
