// Numerics profile and the a-priori error bounds derived from it (docs/numerics.md).
//
// Every bound is an upper bound in exact arithmetic, evaluated in double and inflated outwards by
// more than its own rounding. Where no promise can be made (a relative error of 100 % or more, a
// value that may overflow, a term that is NaN) the bound is +inf, never NaN.
#pragma once

#include <cstdint>
#include <limits>

#include "reference/core/dtype.h"

namespace ringlab {

/// The arithmetic a subject declares. All roundoffs are unit roundoffs (2^-p); 0 means "exact".
struct NumericsProfile {
  DType out_dtype = DType::f32;
  double u_accumulate = 0x1p-24;  ///< of the score dot product, P·V and the row sum
  double exp_error = 0x1p-22;     ///< relative error of exp (or exp2) on its range
  double tanh_error = 0x1p-21;    ///< relative error of tanh, where scores are soft-capped
  double tanh_floor = 0;          ///< absolute error of tanh besides
  double u_probability = 0;       ///< of the type probabilities are cast to before P·V
  double p_underflow = 0;         ///< half the least subnormal of that type, 0 when not cast
  double u_partial = 0;           ///< of the type partial outputs are stored in between merges
  double u_query = 0;             ///< of the type that q, or q and k, are scaled in before the dot
  double u_product = 0;    ///< of both factors of all five products; exponents stay: TF32 2^-11
  double u_lse = 0x1p-24;  ///< of the lse that is returned
  std::int64_t max_rescales = 1;  ///< T: how often one key's contribution may be rescaled
  double u_work = 0x1p-24;        ///< of scaling, subtraction, rescaling and division
  double u_row_sum = 0;           ///< u_probability again when the row sum adds the cast values
  std::int64_t lse_merges = 0;    ///< how often (out, lse) pairs, not running triples, are merged
  /// Longest chain of additions that one term of the row sum or of P·V goes through; 0 means as
  /// many as there are keys. A kernel that adds tiles up separately has tile size plus tile count.
  std::int64_t accumulation_chain = 0;
  /// Times that a partial sum of dk or dv, and of dq, is stored in out_dtype and read back before
  /// it is complete: one for each tile in a kernel that adds to its gradients in memory.
  std::int64_t key_gradient_stores = 0;
  std::int64_t query_gradient_stores = 0;
  /// Sums of dk and dv that are stored beside each other before they are added up: one for each head
  /// of a group, where each has gradients of its own.
  std::int64_t key_gradient_heads = 1;
  double product_underflow = 0x1p-149;  ///< error of a product below the normal range
  double exp_underflow = 0x1p-126;      ///< error of an exp below the normal range, flushed or not
  double query_underflow = 0x1p-149;    ///< of a scaled q or k; unused when u_query is 0
  double max_finite = 0x1.fffffep127;   ///< of the type sums are kept in
  /// Errors of K and V by the wire between ranks; see wire_error(). Zero where they travel exactly.
  double u_wire = 0;          ///< relative rounding
  double wire_floor = 0;      ///< absolute, as a share of the largest magnitude of the token
  double wire_underflow = 0;  ///< absolute
  double wire_max = std::numeric_limits<double>::max();  ///< largest magnitude that may travel
};

/// A correct kernel of ringlab: inputs of `dtype`, everything else in f32 (f64 for f64).
NumericsProfile carried_profile(DType dtype, std::int64_t max_rescales);

/// Times that a sum over `tokens` tokens of each of `heads` heads is stored before it is complete,
/// by a kernel that stores it once in `per_store` tokens of a head; per_store 0: never.
std::int64_t stores_before_the_last(std::int64_t tokens, std::int64_t per_store,
                                    std::int64_t heads);

/// gamma_n(u) = n·u / (1 - n·u); +inf when n·u >= 1.
double gamma_bound(double n, double u);

/// True when K and V keep their bits on the way between ranks.
bool travels_exactly(const NumericsProfile& profile);

/// Relative error of a product of two numbers that are rounded to u_product first.
double factor_error(const NumericsProfile& profile);
/// Error of rounding a number to u_product, beside a share of it: below the normal range.
double factor_underflow(const NumericsProfile& profile);

/// Error bound of a number x of K or V on arrival: u_wire |x| + wire_floor · largest +
/// wire_underflow, where `largest` is the largest magnitude in the same (batch, head, token) of the
/// same tensor. +inf where `largest` is more than wire_max; 0 for an exact wire.
double wire_error(const NumericsProfile& profile, double magnitude, double largest);

/// |half an ulp| of `dtype` at magnitude x: the largest error of rounding any value of at most that
/// magnitude to nearest. Never below half the least subnormal (for f64, which has no such number,
/// the least subnormal). +inf where rounding may overflow: from max_finite plus half an ulp on.
double half_ulp(DType dtype, double magnitude);

/// Terms of E_j, the error bound of the exponent of one key's weight but for a shift of all keys.
struct ScoreTerms {
  std::int64_t head_dim = 0;
  double absolute_products = 0;  ///< A_j = |scale| Σ_c |q_c k_jc|
  double distance_from_max = 0;  ///< |s_j - m|
  double largest_score = 0;      ///< M = max_j |s_j|
  double largest_products = 0;   ///< max_j A_j; the running maximum is known no better than this
  double scale = 1;              ///< |scale|
  double key_magnitude = 0;      ///< Σ_c |k_jc|; matters only where q is pre-scaled
  double query_magnitude = 0;    ///< Σ_c |q_c|; where k is, or travels inexactly
  // These matter only where K travels inexactly.
  double key_largest = 0;      ///< max_c |k_jc|
  double any_key_largest = 0;  ///< the largest key_largest of the row
  // These matter only where scores do not all come from the same constant (core/modifiers.h): with
  // soft-capping, ALiBi or a sink. Then A_j, scaled_score and the errors of q·k are those of the
  // score before soft-capping.
  bool modified = false;
  double softcap = 0;                           ///< 0: none
  double scaled_score = 0;                      ///< |scale · q·k_j|
  double bias = 0;                              ///< |what ALiBi subtracts|; of a sink, its size
  double largest_scaled = 0, largest_bias = 0;  ///< of any key of the row
};
/// Error bound of a score through the wire alone.
double wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms);
/// The largest wire_score_error() of any key of the row.
double largest_wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms);
double score_error(const NumericsProfile& profile, const ScoreTerms& terms);

/// Error bound of the soft-capped score, before ALiBi.
double capped_error(const NumericsProfile& profile, const ScoreTerms& terms);

/// e^exponent (e^error - 1): error bound of one weight, for exponents however far below zero.
double weight_error(double exponent, double error);

/// Relative error that merging (out, lse) pairs adds to every weight of a row. Zero for a profile
/// that carries the running triple.
double merge_error(const NumericsProfile& profile, double largest_score, std::int64_t keys);

/// Sums over the visible keys of one row that the bound of one output channel needs. A sink is one
/// more key whose value is 0; dropout replaces v_j by f_j v_j (core/modifiers.h).
struct OutputTerms {
  std::int64_t keys = 0;          ///< n
  double weighted_spread = 0;     ///< Σ w_j ρ_j |v_j - o|,  ρ_j = e^{E_j} - 1
  double weighted_rho = 0;        ///< W = Σ w_j ρ_j
  double weighted_magnitude = 0;  ///< Σ w_j |v_j|
  double magnitude_sum = 0;       ///< Σ |v_j|
  double row_sum = 1;             ///< ℓ = Σ e^{s_j - m}
  double out = 0;                 ///< |o|
  double max_error = 0;           ///< how far the computed row maximum may be from m
  double merge_error = 0;         ///< see merge_error()
  double weighted_wire = 0;       ///< Σ w_j (1 + ρ_j) τ_j,  τ_j = wire_error() of v_j
  double wire_sum = 0;            ///< Σ τ_j
  double factor_roundings = 0;    ///< of 1 / (1 - p) and of what it multiplies; 0 without dropout
  double largest_factor = 1;      ///< max_j f_j
};
/// Roundings of dropout: its factor as a constant, times a weight or an output, and times a scale.
inline constexpr double kDropoutRoundings = 3;
/// B_c without the reference's own error; +inf when W >= 1 (no promise can be made); 0 for no keys.
double output_bound(const NumericsProfile& profile, const OutputTerms& terms);

struct LseTerms {
  std::int64_t keys = 0;
  double weighted_rho = 0;
  double row_max = 0;
  double row_sum = 1;
  double lse = 0;
  double max_error = 0;
  double merge_error = 0;
};
/// 0 for no keys: the lse of an empty row is -inf exactly.
double lse_bound(const NumericsProfile& profile, const LseTerms& terms);

/// Relative error of a probability recomputed in the backward pass as exp(s_j - lse).
struct ProbabilityTerms {
  ScoreTerms score;
  double lse = 0;
  double lse_error = 0;  ///< of the lse the subject saved: its lse_bound
};
double probability_error(const NumericsProfile& profile, const ProbabilityTerms& terms);

/// δ_dS: error of one dS_ij = P_ij (dP_ij - D_i), without the part that δD_i contributes when that
/// is accounted for once per row; pass row_error = 0 then.
struct ScoreGradientTerms {
  double probability = 0;     ///< P_ij
  double relative_error = 0;  ///< of P_ij: probability_error()
  double difference = 0;      ///< |dP_ij - D_i|
  double product_error = 0;   ///< of dP_ij = Σ_c dO_ic v_jc
  double row_error = 0;       ///< δD_i
};
double score_gradient_error(const NumericsProfile& profile, const ScoreGradientTerms& terms);

/// One element of dq, dk or dv: scale Σ a_t b_t over `terms` products.
struct GradientTerms {
  std::int64_t terms = 0;
  double propagated = 0;    ///< Σ |δa_t| |b_t|
  double magnitude = 0;     ///< Σ |a_t| |b_t|
  double scale = 1;         ///< |scale| for dq and dk, 1 for dv
  double value = 0;         ///< |scale Σ a_t b_t|
  std::int64_t stores = 0;  ///< of partial sums: key_gradient_stores or query_gradient_stores
  std::int64_t heads = 1;   ///< key_gradient_heads for dk and dv
  /// True for dq and dk, whose factors may underflow before they are multiplied: b_t, which is q or k,
  /// when it is pre-scaled, and a_t, which is dS, when the scale meets it first.
  bool is_scaled = false;
  double first_factors = 0;   ///< Σ |a_t| + |δa_t|
  double second_factors = 0;  ///< Σ |b_t|
};
double gradient_bound(const NumericsProfile& profile, const GradientTerms& terms);

}  // namespace ringlab
