// The products of the bf16 kernels in AMX: registers of 16 rows of 64 bytes that are multiplied whole.
//
// TDPBF16PS adds to each number of a matrix C, 16 × 16 in f32, the sum of 16 pairs: products of the
// even halves and products of the odd halves are each a chain of fused multiply-adds from zero, the
// two sums are added, and their sum is added to C. As VDPBF16PS it rounds to nearest even, reads
// subnormal operands as zero and writes subnormal results as zero (Intel's manual;
// bf16_dot_amx_test.cpp compares).
#pragma once

#include "optimized/cpu/bf16/bf16_dot_products.h"

namespace ringlab::cpu::bf16_dot {

/// True when this processor multiplies bf16 matrices and the kernel of the system lets it.
bool amx_available();

/// Matrices in AMX. Only where available() and amx_available().
extern const Products kAmxProducts;

}  // namespace ringlab::cpu::bf16_dot
