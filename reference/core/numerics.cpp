#include "reference/core/numerics.h"

#include <algorithm>
#include <cmath>

#include "reference/core/bounds/parts.h"

namespace ringlab {

double half_least(DType dtype) {
  return dtype == DType::f64 ? 0x1p-1074 : dtype_info(dtype).min_subnormal / 2;
}

double prescaled_underflow(const NumericsProfile& profile) {
  if (profile.u_query == 0) return 0;
  const bool in_own_type = profile.u_query >= dtype_info(profile.out_dtype).unit_roundoff;
  return std::max({profile.query_underflow, profile.product_underflow,
                   in_own_type ? half_least(profile.out_dtype) : 0});
}

double factor_error(const NumericsProfile& profile) {
  return profile.u_product * (2 + profile.u_product);
}

double factor_underflow(const NumericsProfile& profile) {
  // A factor beside it may be off by its own share.
  const double least_normal = profile.out_dtype == DType::f64 ? 0x1p-1022 : 0x1p-126;
  return profile.u_product * (1 + profile.u_product) * least_normal;
}

NumericsProfile carried_profile(DType dtype, std::int64_t max_rescales) {
  NumericsProfile profile{.out_dtype = dtype, .max_rescales = max_rescales};
  if (dtype == DType::f64) {
    profile.tanh_error = 0x1p-50;
    profile.u_accumulate = profile.u_work = profile.u_lse = 0x1p-53;
    profile.exp_error = 0x1p-51;
    profile.product_underflow = profile.query_underflow = 0x1p-1074;
    profile.exp_underflow = 0x1p-1022;
    profile.max_finite = dtype_info(DType::f64).max_finite;
  }
  return profile;
}

std::int64_t stores_before_the_last(std::int64_t tokens, std::int64_t per_store,
                                    std::int64_t heads) {
  if (per_store == 0 || tokens == 0) return 0;
  return heads * ((tokens - 1) / per_store + 1) - 1;
}

double gamma_bound(double n, double u) {
  const double product = n * u;
  if (!(product < 1)) return kNoBound;
  return no_promise_unless_valid(product / (1 - product));
}

bool travels_exactly(const NumericsProfile& profile) {
  return profile.u_wire == 0 && profile.wire_floor == 0 && profile.wire_underflow == 0;
}

double wire_error(const NumericsProfile& profile, double magnitude, double largest) {
  if (!(largest <= profile.wire_max)) return kNoBound;
  return profile.u_wire * magnitude + profile.wire_floor * largest + profile.wire_underflow;
}

double half_ulp(DType dtype, double magnitude) {
  const DTypeInfo& info = dtype_info(dtype);
  const double x = std::abs(magnitude);
  if (!(x < kNoBound)) return kNoBound;
  if (x <= info.min_normal) return half_least(dtype);
  const double bounded = std::min(x, info.max_finite);
  const double half = std::ldexp(info.unit_roundoff, std::ilogb(bounded));
  return x >= info.max_finite + half ? kNoBound : std::max(half, half_least(dtype));
}

double weight_error(double exponent, double error) {
  // For large errors e^(exponent + error), which also survives the underflow of e^exponent.
  const double value =
      error <= 1 ? std::exp(exponent) * std::expm1(error) : std::exp(exponent + error);
  return error < kNoBound ? no_promise_unless_valid(value) : kNoBound;
}

double merge_error(const NumericsProfile& profile, double largest_score, std::int64_t keys) {
  if (profile.lse_merges == 0 || keys == 0) return 0;
  const double lse = largest_score + std::log(static_cast<double>(keys)) + 1;
  const double once =
      profile.exp_error + 2 * (profile.u_lse + 3 * profile.u_work) * lse + 6 * profile.u_work;
  return no_promise_unless_valid(std::expm1(static_cast<double>(profile.lse_merges) * once));
}

}  // namespace ringlab
