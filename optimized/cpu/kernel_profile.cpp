#include "optimized/cpu/kernel_profile.h"

#include "optimized/cpu/bf16/bf16_dot_tile.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::cpu {

NumericsProfile kernel_profile(DType dtype, std::int64_t blocks) {
  NumericsProfile profile = carried_profile(dtype, blocks);
  profile.exp_error = dtype == DType::f64 ? 0x1.cp-52 : 0x1.cp-23;  // 1.75 ulp
  if (dtype != DType::bf16 || !bf16_products_in_use()) return profile;
  // A weight has the error of its short polynomial, once; the error of a rescaling is unchanged.
  constexpr double weight = bf16_dot::kWeightError;
  profile.u_probability = (1 + weight) * (1 + 0x1p-8) - 1;
  profile.u_row_sum = weight;  // adds the weights before they are rounded
  // Subnormal numbers are read as zero, and written as zero.
  profile.p_underflow = profile.product_underflow = 0x1p-126;
  return profile;
}

}  // namespace ringlab::cpu
