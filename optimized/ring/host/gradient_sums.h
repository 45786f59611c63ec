// Sums of dK and dV: of the own chunk, and of other chunks on their way home.
#pragma once

#include <algorithm>
#include <vector>

#include "optimized/ring/host/exchange.h"
#include "reference/core/layout.h"
#include "reference/core/memory_meter.h"
#include "reference/core/problem.h"

namespace ringlab::ring {

/// (batch, kv_heads, tokens, head_dim) and (…, v_dim), one after the other, without the scale.
template <class Real>
struct GradientPair {
  Real* dk = nullptr;
  Real* dv = nullptr;
};

template <class Real>
class GradientSums {
 public:
  GradientSums(const Problem& problem, const Layout& layout, int rank, MemoryMeter& meter)
      : problem_(problem),
        layout_(layout),
        meter_(meter),
        home_(meter, per_token() * layout.positions(rank).size()) {}

  /// Room for the sums of a schedule: sums on their way may be as long as the longest chunk that
  /// this rank visits, sums that come home are as long as its own.
  void make_slots(int slots, std::int64_t most_tokens, std::int64_t own_tokens) {
    for (int slot = 0; slot < slots; ++slot) {
      slots_.emplace_back(meter_, per_token() * (slot < kFirstHomeSum ? most_tokens : own_tokens));
    }
  }

  GradientPair<Real> at(int owner, int slot) {
    Real* const data = slot == kHome ? home_.data() : slots_[static_cast<std::size_t>(slot)].data();
    return {data, data + dk_values(owner)};
  }
  /// Sets a contribution to zero before it is summed up.
  void clear(int owner, int slot) { std::fill_n(at(owner, slot).dk, values(owner), Real(0)); }
  void add(int owner, int slot, int addend) {
    Real* const to = at(owner, slot).dk;
    const Real* const from = at(owner, addend).dk;
    for (std::int64_t i = 0; i < values(owner); ++i) to[i] += from[i];
  }
  TensorPair bytes(int owner, int slot) {
    const GradientPair<Real> pair = at(owner, slot);
    const std::int64_t dk = dk_values(owner);
    return {
        std::as_writable_bytes(std::span(pair.dk, static_cast<std::size_t>(dk))),
        std::as_writable_bytes(std::span(pair.dv, static_cast<std::size_t>(values(owner) - dk)))};
  }

 private:
  std::int64_t tokens(int owner) const { return layout_.positions(owner).size(); }
  std::int64_t dk_values(int owner) const {
    const Shape& s = problem_.shape;
    return s.batch * s.kv_heads * s.head_dim * tokens(owner);
  }
  std::int64_t per_token() const {
    const Shape& s = problem_.shape;
    return s.batch * s.kv_heads * (s.head_dim + s.v_dim);
  }
  std::int64_t values(int owner) const { return per_token() * tokens(owner); }

  const Problem& problem_;
  const Layout& layout_;
  MemoryMeter& meter_;
  MeteredBuffer<Real> home_;
  std::vector<MeteredBuffer<Real>> slots_;
};

}  // namespace ringlab::ring
