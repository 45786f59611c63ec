// The kernels for bf16 on processors that multiply bf16 (AVX512_BF16).
#pragma once

#include "optimized/cpu/bf16/bf16_dot_products.h"
#include "optimized/cpu/block_kernel.h"

namespace ringlab::cpu::bf16_dot {

/// True when this build has the kernel and this processor the instruction.
bool available();

/// True when forward() and backward() can do the block: scores must not be modified nor pairs
/// dropped; the scale, in powers of two, must be a positive normal float, because the largest score
/// is looked for before it is scaled.
bool takes(const Block<BFloat16>& block);

/// forward_block() with scores and outputs summed from bf16 products: weights are rounded to bf16,
/// row sums are not. Keys are taken in pairs from the start of each block of keys on, the odd one
/// of a pair first. An infinite key or query against a subnormal one gives NaN, here a product with
/// zero. About 0.4 MiB of scratch per thread. Only where available() and takes().
void forward(const Block<BFloat16>& block, const Products& products, SoftmaxState<float>* states,
             float* accs);

/// backward_block() with all five products summed from bf16 products: P and dS are rounded to bf16.
/// Subnormal numbers count, as in forward(). About 0.7 MiB of scratch per thread at head_dim 128.
/// Only where available() and takes().
void backward(const Block<BFloat16>& block, const Products& products,
              const QueryGradients<BFloat16>& given, const BlockGradients<BFloat16>& sums);

}  // namespace ringlab::cpu::bf16_dot
