#include "optimized/cuda/kernel_profile.h"

#include <string>

#include "reference/core/error.h"

namespace ringlab::cuda {

NumericsProfile kernel_profile(DType dtype, std::int64_t blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  if (dtype != DType::f16 && dtype != DType::bf16) {
    throw_usage_error({.where = "kernels for tensor cores",
                       .expected = "f16 or bf16",
                       .actual = std::string(info.name),
                       .hint = "Other types have the kernels of the stages."});
  }
  NumericsProfile profile = carried_profile(dtype, blocks);
  // Tensor cores truncate instead of rounding: every term of a sum may lose a whole ulp of the
  // largest (Fasi, Higham, Mikaitis, Pranesh 2021, "Numerical behavior of NVIDIA tensor cores").
  profile.u_accumulate = 0x1p-23;
  profile.exp_error = 0x1p-22;  // ex2.approx: 2 ulp
  profile.u_probability = info.unit_roundoff;
  profile.p_underflow = info.min_subnormal / 2;
  profile.product_underflow = 0x1p-126;  // NVIDIA does not say whether they flush subnormals
  return profile;
}

NumericsProfile hopper_profile(DType dtype, std::int64_t blocks) {
  NumericsProfile profile = kernel_profile(dtype, blocks);
  // Exponents and logarithms are of numbers up to 8 (5.6 in natural units) away from those of the
  // bounds, with at most 5 roundings each: 5 · 5.6 < 32 units.
  profile.exp_error += 32 * profile.u_work;
  return profile;
}

std::int64_t most_blocks_met(std::int64_t keys) {
  constexpr std::int64_t kFewestKeys = 32;  // of a block of any of the kernels
  return keys / kFewestKeys + 3;            // the ends, and the state that comes in
}

}  // namespace ringlab::cuda
