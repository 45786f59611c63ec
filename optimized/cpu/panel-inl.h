// Sums over queries: rows of keys times rows of channels. Included once per target.
#if defined(RINGLAB_CPU_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_PANEL_INL_H_
#undef RINGLAB_CPU_PANEL_INL_H_
#else
#define RINGLAB_CPU_PANEL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "optimized/cpu/product_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Vectors of channels and rows of keys of a full register tile: 6·4 sums of 32 registers, or 4·3
/// of 16.
inline constexpr int kPanelVectors = kRegisters == 32 ? 4 : 3;
inline constexpr int kPanelRows = kRegisters == 32 ? 6 : 4;

/// A matrix of whole vectors, rows `stride` numbers apart, aligned.
template <class Real>
struct Panel {
  Real* values;
  std::int64_t stride;
};

template <class Real>
using RowFactors = Factors<SideBySide::terms, Real>;

/// out[row][c] += Σ_t factors(row, t) · columns[t][c] for kRows rows and kVectors vectors of
/// channels, in the order of t with one rounding per term.
template <int kRows, int kVectors, class Real>
HWY_INLINE void add_products(const RowFactors<Real>& factors, const Panel<const Real>& columns,
                             std::int64_t terms, const Panel<Real>& out) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>();
  Vector<Real> sums[kRows][kVectors];
  Terms<kRows, kVectors, Real> products{{}, 1, columns.values, columns.stride};
  for (int i = 0; i < kRows; ++i) {
    products.rows[i] = factors.values + i * factors.stride;
    for (int x = 0; x < kVectors; ++x)
      sums[i][x] = hn::Load(d, out.values + i * out.stride + x * n);
  }
  products.add_to(sums, terms, [](std::int64_t, int) {});
  for (int i = 0; i < kRows; ++i) {
    for (int x = 0; x < kVectors; ++x)
      hn::Store(sums[i][x], d, out.values + i * out.stride + x * n);
  }
}

/// add_products for any number of rows.
template <int kVectors, class Real>
HWY_INLINE void add_product_rows(RowFactors<Real> factors, std::int64_t rows,
                                 const Panel<const Real>& columns, std::int64_t terms,
                                 Panel<Real> out) {
  const auto advance = [&](std::int64_t by) {
    factors.values += by * factors.stride;
    out.values += by * out.stride;
  };
  for (; rows >= kPanelRows; rows -= kPanelRows) {
    add_products<kPanelRows, kVectors>(factors, columns, terms, out);
    advance(kPanelRows);
  }
  for (; rows >= 2; rows -= 2) {
    add_products<2, kVectors>(factors, columns, terms, out);
    advance(2);
  }
  if (rows == 1) add_products<1, kVectors>(factors, columns, terms, out);
}

/// add_product_rows for any number of vectors of channels.
template <class Real>
HWY_INLINE void add_panel(const RowFactors<Real>& factors, std::int64_t rows,
                          Panel<const Real> columns, std::int64_t terms, Panel<Real> out,
                          std::int64_t vectors) {
  for (; vectors >= kPanelVectors; vectors -= kPanelVectors) {
    add_product_rows<kPanelVectors>(factors, rows, columns, terms, out);
    columns.values += kPanelVectors * lanes<Real>();
    out.values += kPanelVectors * lanes<Real>();
  }
  if (vectors == 3) add_product_rows<3>(factors, rows, columns, terms, out);
  if (vectors == 2) add_product_rows<2>(factors, rows, columns, terms, out);
  if (vectors == 1) add_product_rows<1>(factors, rows, columns, terms, out);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
