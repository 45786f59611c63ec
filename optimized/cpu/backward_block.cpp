// backward_block(): chooses the widest vectors this processor has, once per call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimized/cpu/backward_block.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
#include <hwy/highway.h>

#include "optimized/cpu/backward_worker-inl.h"
#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

void backward_f64(const Block<double>& block, const QueryGradients<double>& given,
                  const BlockGradients<double>& sums) {
  backward_heads(block, given, sums);
}
void backward_f32(const Block<float>& block, const QueryGradients<float>& given,
                  const BlockGradients<float>& sums) {
  backward_heads(block, given, sums);
}
void backward_f16(const Block<Half>& block, const QueryGradients<Half>& given,
                  const BlockGradients<Half>& sums) {
  backward_heads(block, given, sums);
}
void backward_bf16(const Block<BFloat16>& block, const QueryGradients<BFloat16>& given,
                   const BlockGradients<BFloat16>& sums) {
  backward_heads(block, given, sums);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringlab::cpu {

HWY_EXPORT(backward_f64);
HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_f16);
HWY_EXPORT(backward_bf16);

template <>
void backward_block(const Block<double>& block, const QueryGradients<double>& given,
                    const BlockGradients<double>& sums) {
  HWY_DYNAMIC_DISPATCH(backward_f64)(block, given, sums);
}
template <>
void backward_block(const Block<float>& block, const QueryGradients<float>& given,
                    const BlockGradients<float>& sums) {
  HWY_DYNAMIC_DISPATCH(backward_f32)(block, given, sums);
}
template <>
void backward_block(const Block<Half>& block, const QueryGradients<Half>& given,
                    const BlockGradients<Half>& sums) {
  HWY_DYNAMIC_DISPATCH(backward_f16)(block, given, sums);
}
template <>
void backward_block(const Block<BFloat16>& block, const QueryGradients<BFloat16>& given,
                    const BlockGradients<BFloat16>& sums) {
  const bf16_dot::Products* const products = bf16_products_in_use();
  if (products && bf16_dot::takes(block)) {
    bf16_dot::backward(block, *products, given, sums);
  } else {
    HWY_DYNAMIC_DISPATCH(backward_bf16)(block, given, sums);
  }
}

}  // namespace ringlab::cpu
#endif
