// device_code.h on a GPU: each function is one instruction of the PTX ISA, or two.
//
// Functions that need a newer machine than the one compiled for trap. "memory" among the clobbers
// keeps the compiler from moving loads and stores across.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "optimized/cuda/device_types.h"
#include "optimized/cuda/hopper/wgmma.cuh"
#include "optimized/cuda/lost_wait.h"
#include "reference/core/small_float.h"

namespace ringlab::cuda {

extern __shared__ __align__(1024) std::byte dynamic_shared_memory[];

namespace ptx {
/// The 32-bit address in the window of shared memory.
RINGLAB_KERNEL_CODE std::uint32_t address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}
#ifdef RINGLAB_BOUNDED_WAITS
inline constexpr std::uint32_t kSuspendNanoseconds = 10'000;
inline constexpr int kMostPolls = 1 << 20;  // ten seconds where each sleeps as long as it may
/// False when the wait woke for the time. "memory": no read moves before the end of the phase.
RINGLAB_KERNEL_CODE bool is_complete_soon(Barrier* barrier, int parity) {
  int complete = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2, %3;\n"
      "selp.s32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(address(barrier)), "r"(parity), "r"(kSuspendNanoseconds)
      : "memory");
#else
  __trap();
#endif
  return complete != 0;
}
#else
inline constexpr std::uint32_t kSuspendNanoseconds =
    10'000'000;  // a hint: how long a wait may sleep
#endif
}  // namespace ptx

RINGLAB_KERNEL_CODE int thread_index() { return static_cast<int>(threadIdx.x); }
RINGLAB_KERNEL_CODE int block_index() { return static_cast<int>(blockIdx.x); }
RINGLAB_KERNEL_CODE int block_count() { return static_cast<int>(gridDim.x); }
RINGLAB_KERNEL_CODE int cluster_rank() {
  int rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
RINGLAB_KERNEL_CODE std::byte* shared_memory() { return dynamic_shared_memory; }

// Threads of a block.

RINGLAB_KERNEL_CODE void sync_block() { __syncthreads(); }
RINGLAB_KERNEL_CODE void sync_warp() { __syncwarp(); }
RINGLAB_KERNEL_CODE void sync_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void sync_threads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
RINGLAB_KERNEL_CODE void arrive_threads(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
RINGLAB_KERNEL_CODE float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
RINGLAB_KERNEL_CODE std::uint32_t shuffle(std::uint32_t value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
RINGLAB_KERNEL_CODE void atomic_add(float* sum, float value) { atomicAdd(sum, value); }
RINGLAB_KERNEL_CODE void atomic_add_pair(float* pair, float low, float high) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(pair)),
      "f"(low), "f"(high)
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE int atomic_add(int* counter, int value) { return atomicAdd(counter, value); }

// Numbers.

RINGLAB_KERNEL_CODE float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

template <class Element>
RINGLAB_KERNEL_CODE std::uint32_t pack(float low, float high) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  std::uint32_t pair;
  if constexpr (std::is_same_v<Element, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

// Copies and matrix products of a warp.

RINGLAB_KERNEL_CODE void copy_16_bytes(void* shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;  // the rest of the 16 is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ptx::address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
RINGLAB_KERNEL_CODE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

RINGLAB_KERNEL_CODE void load_matrices(std::uint32_t (&fragments)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
               : "r"(ptx::address(row))
               : "memory");
}
RINGLAB_KERNEL_CODE void load_matrices_transposed(std::uint32_t (&fragments)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
               : "r"(ptx::address(row))
               : "memory");
}
RINGLAB_KERNEL_CODE void store_matrices(void* row, const std::uint32_t (&fragments)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(ptx::address(row)),
      "r"(fragments[0]), "r"(fragments[1]), "r"(fragments[2]), "r"(fragments[3])
      : "memory");
#else
  __trap();
#endif
}

#define RINGLAB_MMA(TYPE)                                                             \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                 \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
template <class Element>
RINGLAB_KERNEL_CODE void multiply_add(float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  if constexpr (std::is_same_v<Element, Half>) {
    RINGLAB_MMA("f16");
  } else {
    RINGLAB_MMA("bf16");
  }
}
#undef RINGLAB_MMA

// Barriers in shared memory.

RINGLAB_KERNEL_CODE void init_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(ptx::address(barrier)), "r"(arrivals)
               : "memory");
}
RINGLAB_KERNEL_CODE void publish_barriers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void arrive(Barrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ptx::address(barrier)) : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void arrive_at(Barrier* barrier, int rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(ptx::address(barrier)),
      "r"(rank)
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void arrive_expecting(Barrier* barrier, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ptx::address(barrier)),
      "r"(bytes)
      : "memory");
#else
  __trap();
#endif
}
#ifdef RINGLAB_BOUNDED_WAITS
// For tests: a wait that never ends is reported instead. Everything is an instruction, for a call
// between products would make the compiler wait for each product.
RINGLAB_KERNEL_CODE void wait(Barrier* barrier, int parity, WaitName name) {
  for (int poll = 0; poll < ptx::kMostPolls; ++poll) {
    if (ptx::is_complete_soon(barrier, parity)) return;
  }
  const std::uint64_t place = std::uint64_t{blockIdx.x} << 32 | threadIdx.x;
  asm volatile(
      "st.volatile.global.v2.u64 [%0], {%1, %2};\n"
      "fence.acq_rel.sys;\n"
      "trap;" ::"l"(kLostWaitAddress),
      "l"(name.letters()), "l"(place)
      : "memory");
}
#else
RINGLAB_KERNEL_CODE void wait(Barrier* barrier, int parity, WaitName /*name*/) {
#if __CUDA_ARCH__ >= 900
  // try_wait sleeps for a while and says whether it woke for the phase or for the time.
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1, %2;\n"
      "@complete bra done;\n"
      "bra again;\n"
      "done:\n"
      "}" ::"r"(ptx::address(barrier)),
      "r"(parity), "r"(ptx::kSuspendNanoseconds)
      : "memory");
#else
  __trap();
#endif
}
#endif

// Tiles by the tensor memory accelerator.

RINGLAB_KERNEL_CODE void load_box(void* shared, const TensorMap* map, Barrier* barrier, int head,
                                  int row, int channel) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(ptx::address(shared)),
      "l"(map), "r"(channel), "r"(row), "r"(head), "r"(ptx::address(barrier))
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void load_box_for_all(void* shared, const TensorMap* map, Barrier* barrier,
                                          int blocks, int head, int row, int channel) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(ptx::address(shared)),
      "l"(map), "r"(channel), "r"(row), "r"(head), "r"(ptx::address(barrier)),
      "h"(static_cast<std::uint16_t>((1 << blocks) - 1))
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void store_box(const TensorMap* map, const void* shared, int head, int row,
                                   int channel) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          map),
      "r"(channel), "r"(row), "r"(head), "r"(ptx::address(shared))
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void add_box(const TensorMap* map, const void* shared, int head, int row,
                                 int channel) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group "
      "[%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(channel), "r"(row), "r"(head), "r"(ptx::address(shared))
      : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void commit_boxes() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  __trap();
#endif
}
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_boxes() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void fence_async_proxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  __trap();
#endif
}

// Matrix products of a warpgroup.

template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], Operand a, Operand b, int channel,
                                       bool accumulate) {
  ptx::wgmma<Element, N>(d, rows_descriptor(ptx::address(a.shared), a.box_rows, channel),
                         rows_descriptor(ptx::address(b.shared), b.box_rows, channel), accumulate);
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], const std::uint32_t (&a)[4], Operand b,
                                       int channel, bool accumulate) {
  ptx::wgmma_by_rows<Element, N>(d, a, rows_descriptor(ptx::address(b.shared), b.box_rows, channel),
                                 accumulate);
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_weights(float (&d)[N / 2], const std::uint32_t (&p)[4], Operand v,
                                          int key) {
  static_assert(N % kBoxChannels == 0);
  ptx::wgmma<Element, N>(d, p, columns_descriptor(ptx::address(v.shared), v.box_rows, key));
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_columns(float (&d)[N / 2], Operand a, Operand b, int row,
                                          bool accumulate) {
  static_assert(N % kBoxChannels == 0);
  ptx::wgmma_columns<Element, N>(d, columns_descriptor(ptx::address(a.shared), a.box_rows, row),
                                 columns_descriptor(ptx::address(b.shared), b.box_rows, row),
                                 accumulate);
}

// Registers.

template <int Registers>
RINGLAB_KERNEL_CODE void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
#else
  __trap();
#endif
}
template <int Registers>
RINGLAB_KERNEL_CODE void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
#else
  __trap();
#endif
}

}  // namespace ringlab::cuda
