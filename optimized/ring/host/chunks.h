// The K/V chunks a rank holds: its own in the caller's memory, other chunks in slots.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "optimized/ring/host/exchange.h"
#include "optimized/ring/host/wire.h"
#include "reference/core/layout.h"
#include "reference/core/memory_meter.h"
#include "reference/core/problem.h"

namespace ringlab::ring {

/// A chunk in the form of the kernel: views of K and V.
template <class Element>
struct KvChunk {
  TensorView<const Element> k, v;
};

/// Bytes of K and of V of a chunk, on the wire.
struct WireSizes {
  std::int64_t k = 0, v = 0;
  std::int64_t both() const { return k + v; }
};
inline WireSizes wire_sizes(const Problem& problem, WireFormat wire, std::int64_t tokens) {
  const Shape& s = problem.shape;
  return {.k = wire_bytes(wire, problem.dtype, {s.batch, s.kv_heads, tokens, s.head_dim}),
          .v = wire_bytes(wire, problem.dtype, {s.batch, s.kv_heads, tokens, s.v_dim})};
}

/// Slots hold chunks as they came over the wire and are sent on unchanged. With a lossy wire format
/// the own chunk is encoded once, and one decoded chunk is held for the kernel.
template <class Element>
class Chunks {
 public:
  struct Given {
    const Problem& problem;
    WireFormat wire;
    const Layout& layout;
    int rank = 0;
    int slots = 0;
    std::int64_t most_tokens = 0;  ///< of any chunk that visits a slot
  };

  Chunks(const Given& given, KvChunk<Element> own, MemoryMeter& meter)
      : given_(given), lossy_(is_lossy(given.wire, given.problem.dtype)), own_(own) {
    const std::int64_t bytes = sizes(given.most_tokens).both();
    for (int slot = 0; slot < given.slots; ++slot) slots_.emplace_back(meter, bytes, kUnwritten);
    if (!lossy_) return;
    const WireSizes home = sizes(own.k.extents.tokens);
    own_encoded_.emplace(meter, home.both());
    encode<Element>(given.wire, own.k, {own_encoded_->data(), size(home.k)});
    encode<Element>(given.wire, own.v, {own_encoded_->data() + home.k, size(home.v)});
    decoded_.emplace(meter, elements(given.most_tokens));
  }

  /// The chunk of `owner` for the kernel; valid until the next call.
  KvChunk<Element> chunk(int owner, int slot) {
    if (slot == kHome) return own_;
    const TensorPair wire = bytes(owner, slot);
    const Extents k = k_extents(tokens(owner)), v = v_extents(tokens(owner));
    if (!lossy_) {
      return {dense_view(reinterpret_cast<const Element*>(wire.first.data()), k),
              dense_view(reinterpret_cast<const Element*>(wire.second.data()), v)};
    }
    Element* const to = decoded_->data();
    decode<Element>(given_.wire, wire.first, dense_view(to, k));
    decode<Element>(given_.wire, wire.second, dense_view(to + k.size(), v));
    return {dense_view<const Element>(to, k), dense_view<const Element>(to + k.size(), v)};
  }

  /// Bytes of a slot, to send from or to receive into. The own chunk is only ever sent.
  TensorPair bytes(int owner, int slot) {
    const WireSizes size_of = sizes(tokens(owner));
    if (slot != kHome) return split(slots_[size(slot)].data(), size_of);
    if (lossy_) return split(own_encoded_->data(), size_of);
    return {as_bytes(own_.k, size_of.k), as_bytes(own_.v, size_of.v)};
  }

  /// Bytes of the own chunk as it is sent, and of all slots.
  std::int64_t held_bytes() const {
    std::int64_t held = sizes(own_.k.extents.tokens).both();
    for (const auto& slot : slots_) held += slot.bytes();
    return held;
  }

 private:
  static constexpr std::byte kUnwritten{0xff};  // NaN in every format

  static std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }
  static TensorPair split(std::byte* data, const WireSizes& sizes) {
    return {{data, size(sizes.k)}, {data + sizes.k, size(sizes.v)}};
  }
  /// Sends take const bytes; a TensorPair serves receives as well.
  static std::span<std::byte> as_bytes(const TensorView<const Element>& view, std::int64_t bytes) {
    return {reinterpret_cast<std::byte*>(const_cast<Element*>(view.data)), size(bytes)};
  }
  std::int64_t tokens(int owner) const { return given_.layout.positions(owner).size(); }
  WireSizes sizes(std::int64_t tokens) const {
    return wire_sizes(given_.problem, given_.wire, tokens);
  }
  Extents k_extents(std::int64_t tokens) const {
    const Shape& s = given_.problem.shape;
    return {s.batch, s.kv_heads, tokens, s.head_dim};
  }
  Extents v_extents(std::int64_t tokens) const {
    const Shape& s = given_.problem.shape;
    return {s.batch, s.kv_heads, tokens, s.v_dim};
  }
  std::int64_t elements(std::int64_t tokens) const {
    return k_extents(tokens).size() + v_extents(tokens).size();
  }

  const Given given_;
  const bool lossy_;
  const KvChunk<Element> own_;
  std::vector<MeteredBuffer<std::byte>> slots_;
  std::optional<MeteredBuffer<std::byte>> own_encoded_;
  std::optional<MeteredBuffer<Element>> decoded_;
};

}  // namespace ringlab::ring
