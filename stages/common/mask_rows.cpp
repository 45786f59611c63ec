#include "stages/common/mask_rows.h"

#include <algorithm>

namespace ringlab::stages {

MaskTable::MaskTable(const Mask& mask, const Positions& queries, MemoryMeter& meter)
    : queries_(queries),
      kv_tokens_(mask.kv_tokens()),
      visible_(meter, queries.size()),
      bits_(meter, mask.has_bits() ? queries.size() * mask.kv_tokens() : 0) {
  const std::vector<std::int64_t> rows = queries.to_list();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    visible_.data()[row] = mask.interval(rows[row]);
    for (std::int64_t key = 0; key < kv_tokens_ && mask.has_bits(); ++key) {
      bits_.data()[static_cast<std::int64_t>(row) * kv_tokens_ + key] =
          mask.bits_allow(rows[row], key);
    }
  }
}

MaskRows MaskTable::rows(const MeteredBuffer<std::int64_t>& key_positions) const {
  return {.visible = array_of(visible_),
          .key_positions = array_of(key_positions),
          .bits = array_of(bits_),
          .kv_tokens = kv_tokens_};
}

MeteredBuffer<std::int64_t> position_array(const Positions& positions, MemoryMeter& meter) {
  MeteredBuffer<std::int64_t> array(meter, positions.size());
  std::ranges::copy(positions.to_list(), array.data());
  return array;
}

}  // namespace ringlab::stages
