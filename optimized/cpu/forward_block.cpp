// forward_block(): chooses the widest vectors this processor has, once per call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimized/cpu/forward_block.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
#include <hwy/highway.h>

#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/few_queries-inl.h"
#include "optimized/cpu/few_queries.h"
#include "optimized/cpu/forward_worker-inl.h"
#include "optimized/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

template <class Element>
void forward_any(const Block<Element>& block, SoftmaxState<Accumulator<Element>>* states,
                 Accumulator<Element>* accs) {
  has_few_queries(block) ? forward_few(block, states, accs) : forward_heads(block, states, accs);
}

void forward_f64(const Block<double>& block, SoftmaxState<double>* states, double* accs) {
  forward_any(block, states, accs);
}
void forward_f32(const Block<float>& block, SoftmaxState<float>* states, float* accs) {
  forward_any(block, states, accs);
}
void forward_f16(const Block<Half>& block, SoftmaxState<float>* states, float* accs) {
  forward_any(block, states, accs);
}
void forward_bf16(const Block<BFloat16>& block, SoftmaxState<float>* states, float* accs) {
  forward_any(block, states, accs);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringlab::cpu {

std::int64_t key_blocks(const Positions& keys, std::int64_t tile_keys) {
  std::int64_t blocks = 0;
  for (const PositionRun& run : keys.runs()) blocks += (run.count + tile_keys - 1) / tile_keys;
  return blocks;
}

HWY_EXPORT(forward_f64);
HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f16);
HWY_EXPORT(forward_bf16);

template <>
void forward_block(const Block<double>& block, SoftmaxState<double>* states, double* accs) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(block, states, accs);
}
template <>
void forward_block(const Block<float>& block, SoftmaxState<float>* states, float* accs) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(block, states, accs);
}
template <>
void forward_block(const Block<Half>& block, SoftmaxState<float>* states, float* accs) {
  HWY_DYNAMIC_DISPATCH(forward_f16)(block, states, accs);
}
template <>
void forward_block(const Block<BFloat16>& block, SoftmaxState<float>* states, float* accs) {
  const bf16_dot::Products* const products = bf16_products_in_use();
  if (products && bf16_dot::takes(block) && !has_few_queries(block)) {
    bf16_dot::forward(block, *products, states, accs);
  } else {
    HWY_DYNAMIC_DISPATCH(forward_bf16)(block, states, accs);
  }
}

}  // namespace ringlab::cpu
#endif
