// Stage 20, compressed_wire: K and V travel as one byte a number; each row has its scale.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "reference/core/small_float.h"
#include "reference/core/wire_profile.h"
#include "stages/05_ring/ring.h"
#include "stages/16_bidirectional/bidirectional.h"
#include "stages/common/parcel.h"

namespace ringlab::stages::compressed_wire {

using bidirectional::attend, bidirectional::own_chunk;

/// The exponent of the least power of two that takes the largest number of a row to 448 at most,
/// which is what e4m3 ends with.
template <class Element>
Scale scale_of(const Element* row, std::int64_t channels) {
  // [lab: scale]
  double largest = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double size = std::abs(static_cast<double>(row[c]));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  // [gap: scale]
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);  // largest = fraction 2^exponent
  return static_cast<Scale>(exponent - (fraction <= 0.875 ? 9 : 8));  // 448 = 0.875 2^9
  // end [gap: scale]
  // end [lab: scale]
}

template <class Element>
void pack(const Element* values, std::int64_t rows, std::int64_t channels, Code* codes,
          Scale* scales) {
  // [lab: pack]
  for (std::int64_t row = 0; row < rows; ++row) {
    // [gap: pack]
    scales[row] = scale_of(values + row * channels, channels);
    // end [gap: pack]
    for (std::int64_t at = row * channels; at < (row + 1) * channels; ++at) {
      codes[at] = Fp8E4M3(std::ldexp(static_cast<double>(values[at]), -scales[row])).bits;
    }
  }
  // end [lab: pack]
}

/// Makes numbers of codes; what rounding took beyond the largest number of Element is that number.
template <class Element>
void unpack(const Code* codes, const Scale* scales, std::int64_t rows, std::int64_t channels,
            Element* values) {
  const double most = dtype_info(dtype_of<Element>).max_finite;
  // [lab: unpack]
  for (std::int64_t at = 0; at < rows * channels; ++at) {
    Fp8E4M3 code;
    code.bits = codes[at];
    // [gap: read]
    const double value = std::ldexp(static_cast<double>(code), scales[at / channels]);
    // end [gap: read]
    // [gap: store]
    values[at] = static_cast<Element>(std::clamp(value, -most, most));
    // end [gap: store]
  }
  // end [lab: unpack]
}

/// Chunks are packed once, by their owner, and go on as they came.
template <class Element>
void circulate(RankProblem<Element>& r, const MaskTable& mask, RowStates<Element>& running) {
  const std::int64_t d = r.k.extents.channels, dv = r.v.extents.channels;
  Parcel<Element> here(r), arriving(r);
  ChunkSlot<Element> slot(r);
  r.work.hold_kv((r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)} +
                 slot.bytes() + here.bytes() + arriving.bytes());
  here.codes.owner = r.rank();
  pack(r.k.data, here.rows(r), d, here.codes.k.data(), here.scales.data());
  pack(r.v.data, here.rows(r), dv, here.codes.v.data(), here.scales.data() + here.rows(r));
  for (int hop = 1; hop < r.ranks(); ++hop) {
    // [lab: hop]
    arriving.codes.owner = r.rank_at(-hop);
    std::vector<Request> posted = stages::ring::post_hop(r, here.codes, arriving.codes);
    posted.push_back(r.network.post_send(r.rank_at(1), kScales, here.scale_bytes(r)));
    posted.push_back(r.network.post_receive(r.rank_at(-1), kScales, arriving.scale_bytes(r)));
    for (const Request request : posted) r.network.wait(request);
    std::swap(here, arriving);
    // [gap: unpack]
    slot.owner = here.codes.owner;
    const std::int64_t rows = here.rows(r);
    unpack(here.codes.k.data(), here.scales.data(), rows, d, slot.k.data());
    unpack(here.codes.v.data(), here.scales.data() + rows, rows, dv, slot.v.data());
    // end [gap: unpack]
    // end [lab: hop]
    attend(r, mask, {slot.owner, slot.k_values(r), slot.v_values(r)}, hop, running);
  }
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  r.work.hold_kv((r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)});
  attend(r, mask, own_chunk(r), 0, running);
  if (r.ranks() > 1) circulate(r, mask, running);
  merge::finish(r, running);
}

/// One rescale per tile of every chunk, of keys and values that came as e4m3.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return wire_profile(stage_profile(problem, options, tiles_of_chunks(problem, options)),
                      WireFormat::fp8, problem.dtype);
}

inline constexpr StageFacts kFacts{
    .idea = "K and V travel as one byte a number, and the scale of each row with them.",
    .costs = compressed_wire_costs};

}  // namespace ringlab::stages::compressed_wire
