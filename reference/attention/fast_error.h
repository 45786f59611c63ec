// The error of fast_forward, bounded from a few numbers per row and without a loop over keys.
//
// One row, all in exact arithmetic unless hatted; u = 2^-53, γ_n = nu / (1 - nu), V = max |v_jc|
// over the keys that the row's tile visits. Kernel and notation: fast_kernel.h, docs/numerics.md.
//
// 1. Scores, in base-2 units: s_j = log2 e · scale · q·k_j, and by Cauchy and Schwarz
//    |s_j| <= B = log2 e |scale| ‖q‖ max‖k_j‖. Constant, scaled query and d terms:
//    |ŝ_j - s_j| <= γ_{d+8} B, and what underflows in products is at most 2^-1074 (√d max‖k_j‖ + d).
// 2. Weights 2^{ŝ_j - m̂_j}, m̂_j the running maximum then, multiplied by 2^{m̂ - m̂'} when it rises:
//    the exponents telescope to ŝ_j - m̂. Each difference is rounded; their sizes add up to 2B for
//    the weight and 2B for all factors: 4u B̂. Each of the 1 + T powers has kPowerError.
//    Weights in effect are hence e^{η_j} times the true ones, up to a common factor, with
//      |η_j| <= E = ln 2 (γ_{d+8} B + 4u B̂ + underflow) + (T + 1) kPowerError.
// 3. Exactly  ô - o = Σ w_j (r_j - 1)(v_j - o) / Σ w_j r_j  with r_j = e^{η_j}, so
//      |ô - o| <= 2V min(1, e^E (e^E - 1)).
// 4. Powers below 2^kLeastPower are flushed, once per key at most: φ = 2^-1019 of the largest one.
//    Row sum and P·V both lose at most nφ, nφV.
// 5. Sums: kBlockKeys terms at most in a chain, then two roundings per block:
//    γ = γ_{kBlockKeys+2b+4} of Σ weights, and of V Σ weights; products that underflow:
//    ν = (4n + 16) 2^-1074 in all, taken for 2^-1000 each.
// 6. Division as a product with the reciprocal: 3u |ô|.
// The row sum ℓ̂ is at least 1 (the largest weight is 2^0 and never shrinks), but the bound takes it
// as it is.
#pragma once

#include <cstdint>

namespace ringlab::fast {

struct RowTerms {
  std::int64_t head_dim = 0;
  double scale = 0;           ///< |scale|
  double query_norm = 0;      ///< upper bound of ‖q‖
  double key_norm = 0;        ///< upper bound of max ‖k_j‖ over the visited blocks
  std::int64_t keys = 0;      ///< visited, whether seen or not
  std::int64_t blocks = 0;    ///< visited
  std::int64_t rescales = 0;  ///< T
  double row_max = 0;         ///< m̂
  double row_sum = 1;         ///< ℓ̂
  double lse = 0;             ///< as computed
};

/// out is off by at most largest_share · V + rounding · |out| + absolute.
struct RowError {
  double largest_share = 0;
  double absolute = 0;
  double lse = 0;
};
inline constexpr double kDivisionRounding = 0x1.8p-52;  ///< 3u

RowError row_error(const RowTerms& terms);

/// Upper bound of the Euclidean norm of `channels` numbers whose squares sum to this, as computed.
double norm_bound(double sum_of_squares, std::int64_t channels);

/// Upper bound of |score| in base-2 units, as computed.
double score_bound(std::int64_t head_dim, double scale, double query_norm, double key_norm);

}  // namespace ringlab::fast
