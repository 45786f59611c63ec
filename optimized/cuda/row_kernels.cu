#include <cuda_runtime.h>

#include <algorithm>

#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/portable_launch.cuh"
#include "optimized/cuda/row_kernels.cuh"

namespace ringlab::cuda {
namespace {

__global__ void __launch_bounds__(kRowThreads)
    clear_kernel(const __grid_constant__ ClearStates call) {
  clear_states_block(call);
}
template <class Element>
__global__ void __launch_bounds__(kRowThreads)
    finish_kernel(const __grid_constant__ FinishRows<Element> call) {
  finish_rows_block(call);
}
template <class Element>
__global__ void __launch_bounds__(kRowThreads)
    merge_kernel(const __grid_constant__ MergeRows<Element> call) {
  merge_rows_block(call);
}
template <class Element>
__global__ void __launch_bounds__(kRowThreads)
    add_kernel(const __grid_constant__ AddRows<Element> call) {
  add_rows_block(call);
}
__global__ void __launch_bounds__(kRowThreads) pack_kernel(const __grid_constant__ PackRows call) {
  pack_rows_block(call);
}
template <class Element>
__global__ void __launch_bounds__(kRowThreads)
    delta_kernel(const __grid_constant__ DeltaRows<Element> call) {
  delta_rows_block(call);
}
template <class Element>
__global__ void __launch_bounds__(kRowThreads)
    scale_kernel(const __grid_constant__ ScaleTo<Element> call) {
  scale_to_block(call);
}

/// The most blocks, which fill any GPU; they go through more rows each where there are more.
constexpr std::int64_t kMostBlocks = 16384;

// Rows do not depend on their block, so results do not depend on the number of blocks.
LaunchPlan plan(const char* name, std::int64_t blocks, Stream stream) {
  return {.name = name,
          .blocks = std::min(blocks, kMostBlocks),
          .threads = kRowThreads,
          .shared_bytes = 0,
          .stream = stream};
}

}  // namespace

void clear_states(const ClearStates& call, Stream stream) {  // (rows), a warp each
  launch_kernel<clear_kernel>(plan("clear_states", tiles_of(call.rows, kRowWarps), stream), call);
}

template <class Element>
void finish_rows(const FinishRows<Element>& call, Stream stream) {
  launch_kernel<finish_kernel<Element>>(plan("finish_rows", tiles_of(call.rows, kRowWarps), stream),
                                        call);
}

template <class Element>
void merge_rows(const MergeRows<Element>& call, Stream stream) {
  launch_kernel<merge_kernel<Element>>(
      plan("merge_rows", tiles_of(call.heads * call.count, kRowWarps), stream), call);
}

template <class Element>
void add_rows(const AddRows<Element>& call, Stream stream) {
  launch_kernel<add_kernel<Element>>(
      plan("add_rows", tiles_of(call.heads * call.count, kRowWarps), stream), call);
}

void pack_rows(const PackRows& call, Stream stream) {  // a thread per row
  launch_kernel<pack_kernel>(
      plan("pack_rows", tiles_of(call.heads * call.count, kRowThreads), stream), call);
}

template <class Element>
void delta_rows(const DeltaRows<Element>& call, Stream stream) {
  launch_kernel<delta_kernel<Element>>(plan("delta_rows", tiles_of(call.rows, kRowWarps), stream),
                                       call);
}

template <class Element>
void scale_to(const ScaleTo<Element>& call, Stream stream) {
  launch_kernel<scale_kernel<Element>>(
      plan("scale_to", tiles_of(call.count / 2, kRowThreads), stream), call);
}

template void finish_rows(const FinishRows<Half>&, Stream);
template void finish_rows(const FinishRows<BFloat16>&, Stream);
template void merge_rows(const MergeRows<Half>&, Stream);
template void merge_rows(const MergeRows<BFloat16>&, Stream);
template void add_rows(const AddRows<Half>&, Stream);
template void add_rows(const AddRows<BFloat16>&, Stream);
template void delta_rows(const DeltaRows<Half>&, Stream);
template void delta_rows(const DeltaRows<BFloat16>&, Stream);
template void scale_to(const ScaleTo<Half>&, Stream);
template void scale_to(const ScaleTo<BFloat16>&, Stream);

}  // namespace ringlab::cuda
