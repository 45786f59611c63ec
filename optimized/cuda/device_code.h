// The few operations that kernels of this folder need of the machine, each a function.
//
// nvcc makes each one instruction or two (ptx.cuh). Other compilers get an emulated GPU
// (emulator/), on which the same kernels, unchanged, run on a CPU: threads are fibres in a random
// order, asynchronous copies and matrix products happen as late as they may, and memory that may
// not be read yet holds NaN. Kernels are thus checked where there is no GPU, and their barriers
// harder than by a GPU.
//
// A kernel is a function template `void name(const Params&)`, marked RINGLAB_KERNEL_CODE. Blocks
// and threads have one dimension. Names of instructions are those of the PTX ISA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/device_types.h"
#include "reference/core/dtype.h"

namespace ringlab::cuda {

// The place of this thread.

RINGLAB_KERNEL_CODE int thread_index();  ///< threadIdx.x
RINGLAB_KERNEL_CODE int block_index();   ///< blockIdx.x
RINGLAB_KERNEL_CODE int block_count();   ///< gridDim.x
/// The block's number in its cluster: blocks that run at the same time and reach each other's shared
/// memory, one block where the launch says nothing (sm_90).
RINGLAB_KERNEL_CODE int cluster_rank();
/// The block's dynamic shared memory, aligned to 1024 bytes. Holds garbage at first.
RINGLAB_KERNEL_CODE std::byte* shared_memory();

// Threads of a block.

RINGLAB_KERNEL_CODE void sync_block();  ///< __syncthreads()
RINGLAB_KERNEL_CODE void sync_warp();   ///< __syncwarp(), all lanes
/// barrier.cluster: all threads of all blocks of the cluster.
RINGLAB_KERNEL_CODE void sync_cluster();
/// bar.sync, bar.arrive: named barriers 1 … 15; `threads`, a multiple of 32, take part in all.
RINGLAB_KERNEL_CODE void sync_threads(int barrier, int threads);
RINGLAB_KERNEL_CODE void arrive_threads(int barrier, int threads);
/// The value of the lane whose number differs in the bits of `mask`. All lanes of the warp.
RINGLAB_KERNEL_CODE float shuffle_xor(float value, int mask);
/// The value of lane `lane`. All lanes of the warp.
RINGLAB_KERNEL_CODE std::uint32_t shuffle(std::uint32_t value, int lane);
/// Adds `value` of every thread that calls it to *sum in global memory, in any order. Subnormal
/// numbers count as 0, as operands and as sums.
RINGLAB_KERNEL_CODE void atomic_add(float* sum, float value);
/// atomic_add() for two neighbours, each by itself. `pair` is aligned to 8 bytes. (red.v2, sm_90)
RINGLAB_KERNEL_CODE void atomic_add_pair(float* pair, float low, float high);
/// Adds `value` atomically; returns *counter as it was before.
RINGLAB_KERNEL_CODE int atomic_add(int* counter, int value);

// Numbers.

/// ex2.approx.ftz.f32: 2^x, 2 ulp by the PTX ISA; subnormal results are 0.
RINGLAB_KERNEL_CODE float exp2_approx(float x);
/// `low` and `high` rounded to nearest even, `low` in the low half.
template <class Element>
RINGLAB_KERNEL_CODE std::uint32_t pack(float low, float high);

// Copies and matrix products of a warp (sm_80).

/// cp.async, 16 bytes; zeros are written where `valid` is false, and nothing is read.
RINGLAB_KERNEL_CODE void copy_16_bytes(void* shared, const void* global, bool valid);
RINGLAB_KERNEL_CODE void commit_copies();
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_copies();  ///< until at most `Pending` groups are under way
/// ldmatrix.x4 of b16: lane l gives the address of row l % 8 of matrix l / 8, 16 bytes aligned.
RINGLAB_KERNEL_CODE void load_matrices(std::uint32_t (&fragments)[4], const void* row);
RINGLAB_KERNEL_CODE void load_matrices_transposed(std::uint32_t (&fragments)[4], const void* row);
/// stmatrix.x4 of b16 (sm_90): the opposite of load_matrices().
RINGLAB_KERNEL_CODE void store_matrices(void* row, const std::uint32_t (&fragments)[4]);
/// mma.sync.m16n8k16: d += a b, a row-major, b column-major, in the fragments of the PTX ISA.
template <class Element>
RINGLAB_KERNEL_CODE void multiply_add(float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]);

// Barriers in shared memory (mbarrier, sm_90).

/// Makes a barrier for `arrivals` per phase. Followed by publish_barriers() and a sync_block().
RINGLAB_KERNEL_CODE void init_barrier(Barrier* barrier, int arrivals);
RINGLAB_KERNEL_CODE void publish_barriers();  ///< fence.mbarrier_init and fence.proxy.async
RINGLAB_KERNEL_CODE void arrive(Barrier* barrier);
/// Arrives at the barrier in the same place of block `rank` of the cluster, which has not ended.
RINGLAB_KERNEL_CODE void arrive_at(Barrier* barrier, int rank);
/// Arrives, and makes the phase wait for `bytes` more of asynchronous copies.
RINGLAB_KERNEL_CODE void arrive_expecting(Barrier* barrier, std::uint32_t bytes);
/// Waits until the phase of this parity is complete. A new barrier is in phase 0; waiting for
/// parity 1 on it returns at once. A wait that never ends is reported by `name` and ends the
/// kernel, in builds for tests and on the emulated GPU.
RINGLAB_KERNEL_CODE void wait(Barrier* barrier, int parity, WaitName name);

// Tiles by the tensor memory accelerator (sm_90).

/// Called by one thread. Copies the box that begins at (head, row, channel); elements outside the
/// tensor's rows or channels arrive as zeros, so that the box always has all its bytes.
RINGLAB_KERNEL_CODE void load_box(void* shared, const TensorMap* map, Barrier* barrier, int head,
                                  int row, int channel);
/// load_box() for the first `blocks` blocks of the cluster: the box goes to the same place of each,
/// and the barrier in the same place of each counts its bytes.
RINGLAB_KERNEL_CODE void load_box_for_all(void* shared, const TensorMap* map, Barrier* barrier,
                                          int blocks, int head, int row, int channel);
/// Called by one thread. Writes a box in the layout of load_box() to (head, row, channel) of the
/// tensor, none of them negative; elements outside the tensor are left out.
RINGLAB_KERNEL_CODE void store_box(const TensorMap* map, const void* shared, int head, int row,
                                   int channel);
/// As store_box(), but adds to the numbers of a tensor of f32, each by itself, in any order.
RINGLAB_KERNEL_CODE void add_box(const TensorMap* map, const void* shared, int head, int row,
                                 int channel);
RINGLAB_KERNEL_CODE void commit_boxes();
/// Waits until shared memory of all boxes that this thread stores or adds has been read, but for the
/// last `Pending` groups. Before the thread ends, at the latest.
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_boxes();
/// Makes writes to shared memory visible to load_box, store_box, add_box and to the tensor cores'
/// own reads, and orders earlier reads of it before their reads and writes.
RINGLAB_KERNEL_CODE void fence_async_proxy();

// Matrix products of a warpgroup (wgmma, sm_90a).
//
// Four warps, of which the first one's number is a multiple of 4. Accumulators: thread t of the
// warpgroup holds of row 16 (t / 32) + (t % 32) / 4 + 8 i the columns 8 n + 2 (t % 4) + {0, 1} in
// d[4 n + 2 i + {0, 1}].

/// wgmma.fence: before the first product, and after registers that are operands changed.
RINGLAB_KERNEL_CODE void products_begin();
RINGLAB_KERNEL_CODE void products_commit();  ///< wgmma.commit_group
/// wgmma.wait_group: until at most `Pending` groups are under way. Only then may accumulators, and
/// registers that were operands, be touched.
template <int Pending>
RINGLAB_KERNEL_CODE void products_wait();
/// Keeps the compiler from moving uses of `d` across this point.
template <int Count>
RINGLAB_KERNEL_CODE void hold(float (&d)[Count]);
/// Keeps the assembler from moving waits for products up to before `value`, a number >= 0 or NaN,
/// is computed: work that is to run under products would then run after them.
RINGLAB_KERNEL_CODE void compute_before_waiting(float value);

/// d (64, N) = or += A B for 16 channels beginning at `channel`: A (64 rows, channels) and B (N
/// rows, channels), d = A Bᵀ. N a multiple of 16 up to 256. `accumulate` false: d is overwritten.
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], Operand a, Operand b, int channel,
                                       bool accumulate);
/// d (64, N) = or += A Bᵀ as before, but with A (64, 16 channels) in registers, as four packed
/// pairs in the order of an mma A fragment. N a multiple of 64.
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], const std::uint32_t (&a)[4], Operand b,
                                       int channel, bool accumulate);
/// d (64, N) += P V for 16 keys: P (64, 16) in registers as four packed pairs, in the order of an
/// mma A fragment; V (keys, N channels): keys `key` … key + 15, channels 0 … N - 1 (N a multiple of
/// 64).
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_weights(float (&d)[N / 2], const std::uint32_t (&p)[4], Operand v,
                                          int key);
/// d (64, N) = or += Aᵀ B for 16 rows beginning at `row`: A (rows, 64 columns, one box) and B
/// (rows, N columns), both in shared memory. N a multiple of 64. `accumulate` false: d is
/// overwritten.
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_columns(float (&d)[N / 2], Operand a, Operand b, int row,
                                          bool accumulate);

// Registers (setmaxnreg, sm_90a).

template <int Registers>
RINGLAB_KERNEL_CODE void take_registers();
template <int Registers>
RINGLAB_KERNEL_CODE void give_registers();

}  // namespace ringlab::cuda

#ifdef __CUDACC__
#include "optimized/cuda/ptx.cuh"
#else
#include RINGLAB_INSTRUCTIONS  // those of an emulated GPU
#endif
