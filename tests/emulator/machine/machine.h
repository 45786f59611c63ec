// device_code.h on the emulated GPU: each function asks the block that runs.
//
// The emulation is stricter than a GPU:
//   - shared memory, targets of copies under way and accumulators of products under way hold NaN;
//   - copies and products happen at random times, each at the latest when somebody waits for it;
//   - threads run in a random order, one until it waits or, here and there, earlier;
//   - behaviour that is undefined on a GPU is a KernelFault (fault.h), and so is a deadlock.
// It does not find races between ordinary writes and reads that no order of threads shows, accesses
// to global memory beyond its end, and errors in the order of memory seen by other blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/device_types.h"
#include "reference/core/dtype.h"
#include "tests/emulator/machine/boxes.h"
#include "tests/emulator/machine/cluster.h"
#include "tests/emulator/machine/copies.h"
#include "tests/emulator/machine/here.h"
#include "tests/emulator/machine/mbarriers.h"
#include "tests/emulator/machine/named_barriers.h"
#include "tests/emulator/machine/numbers.h"
#include "tests/emulator/machine/products.h"
#include "tests/emulator/machine/registers.h"
#include "tests/emulator/machine/stores.h"
#include "tests/emulator/machine/warp.h"

namespace ringlab::cuda {

RINGLAB_KERNEL_CODE int thread_index() { return emulator::here.thread; }
RINGLAB_KERNEL_CODE int block_index() { return emulator::here.block; }
RINGLAB_KERNEL_CODE int block_count() { return emulator::here.blocks; }
RINGLAB_KERNEL_CODE int cluster_rank() { return emulator::here.cluster_rank; }
RINGLAB_KERNEL_CODE std::byte* shared_memory() { return emulator::here.shared; }

RINGLAB_KERNEL_CODE void sync_block() { emulator::instructions::sync_block(); }
RINGLAB_KERNEL_CODE void sync_warp() { emulator::instructions::sync_warp(); }
RINGLAB_KERNEL_CODE void sync_cluster() { emulator::instructions::sync_cluster(); }
RINGLAB_KERNEL_CODE void sync_threads(int barrier, int threads) {
  emulator::instructions::sync_threads(barrier, threads);
}
RINGLAB_KERNEL_CODE void arrive_threads(int barrier, int threads) {
  emulator::instructions::arrive_threads(barrier, threads);
}
RINGLAB_KERNEL_CODE float shuffle_xor(float value, int mask) {
  return emulator::instructions::shuffle_xor(value, mask);
}
RINGLAB_KERNEL_CODE std::uint32_t shuffle(std::uint32_t value, int lane) {
  return emulator::instructions::shuffle(value, lane);
}
RINGLAB_KERNEL_CODE void atomic_add(float* sum, float value) {
  emulator::let_others_run();
  *sum = emulator::flushed_sum(*sum, value);
}
RINGLAB_KERNEL_CODE void atomic_add_pair(float* pair, float low, float high) {
  atomic_add(pair, low);
  atomic_add(pair + 1, high);
}
RINGLAB_KERNEL_CODE int atomic_add(int* counter, int value) {
  emulator::let_others_run();
  const int before = *counter;
  *counter += value;
  return before;
}

RINGLAB_KERNEL_CODE float exp2_approx(float x) { return emulator::exp2_approx(x); }
template <class Element>
RINGLAB_KERNEL_CODE std::uint32_t pack(float low, float high) {
  emulator::instructions::note_operands();
  return std::uint32_t{Element(static_cast<double>(high)).bits} << 16 |
         Element(static_cast<double>(low)).bits;
}

RINGLAB_KERNEL_CODE void copy_16_bytes(void* shared, const void* global, bool valid) {
  emulator::instructions::copy_16_bytes(shared, global, valid);
}
RINGLAB_KERNEL_CODE void commit_copies() { emulator::instructions::commit_copies(); }
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_copies() {
  emulator::instructions::wait_for_copies(Pending);
}
RINGLAB_KERNEL_CODE void load_matrices(std::uint32_t (&fragments)[4], const void* row) {
  emulator::instructions::load_matrices(fragments, row);
}
RINGLAB_KERNEL_CODE void load_matrices_transposed(std::uint32_t (&fragments)[4], const void* row) {
  emulator::instructions::load_matrices_transposed(fragments, row);
}
RINGLAB_KERNEL_CODE void store_matrices(void* row, const std::uint32_t (&fragments)[4]) {
  emulator::instructions::store_matrices(row, fragments);
}
template <class Element>
RINGLAB_KERNEL_CODE void multiply_add(float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]) {
  emulator::instructions::multiply_add(dtype_of<Element>, d, a, b);
}

RINGLAB_KERNEL_CODE void init_barrier(Barrier* barrier, int arrivals) {
  emulator::instructions::init_barrier(barrier, arrivals);
}
RINGLAB_KERNEL_CODE void publish_barriers() { emulator::instructions::publish_barriers(); }
RINGLAB_KERNEL_CODE void arrive(Barrier* barrier) { emulator::instructions::arrive(barrier); }
RINGLAB_KERNEL_CODE void arrive_at(Barrier* barrier, int rank) {
  emulator::instructions::arrive_at(barrier, rank);
}
RINGLAB_KERNEL_CODE void arrive_expecting(Barrier* barrier, std::uint32_t bytes) {
  emulator::instructions::arrive_expecting(barrier, bytes);
}
RINGLAB_KERNEL_CODE void wait(Barrier* barrier, int parity, WaitName name) {
  emulator::instructions::wait(barrier, parity, name);
}

RINGLAB_KERNEL_CODE void load_box(void* shared, const TensorMap* map, Barrier* barrier, int head,
                                  int row, int channel) {
  emulator::instructions::load_box(shared, map, barrier, head, row, channel);
}
RINGLAB_KERNEL_CODE void load_box_for_all(void* shared, const TensorMap* map, Barrier* barrier,
                                          int blocks, int head, int row, int channel) {
  emulator::instructions::load_box_for_all(shared, map, barrier, blocks, head, row, channel);
}
RINGLAB_KERNEL_CODE void store_box(const TensorMap* map, const void* shared, int head, int row,
                                   int channel) {
  emulator::instructions::store_box(map, shared, head, row, channel);
}
RINGLAB_KERNEL_CODE void add_box(const TensorMap* map, const void* shared, int head, int row,
                                 int channel) {
  emulator::instructions::add_box(map, shared, head, row, channel);
}
RINGLAB_KERNEL_CODE void commit_boxes() { emulator::instructions::commit_boxes(); }
template <int Pending>
RINGLAB_KERNEL_CODE void wait_for_boxes() {
  emulator::instructions::wait_for_boxes(Pending);
}
RINGLAB_KERNEL_CODE void fence_async_proxy() { emulator::instructions::fence_async_proxy(); }

RINGLAB_KERNEL_CODE void products_begin() { emulator::instructions::products_begin(); }
RINGLAB_KERNEL_CODE void products_commit() { emulator::instructions::products_commit(); }
template <int Pending>
RINGLAB_KERNEL_CODE void products_wait() {
  emulator::instructions::products_wait(Pending);
}
template <int Count>
RINGLAB_KERNEL_CODE void hold(float (&)[Count]) {}
RINGLAB_KERNEL_CODE void compute_before_waiting(float /*value*/) {}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], Operand a, Operand b, int channel,
                                       bool accumulate) {
  static_assert(N % 16 == 0 && N >= 16 && N <= 256);
  emulator::instructions::multiply_rows({.type = dtype_of<Element>,
                                         .n = N,
                                         .form = emulator::ProductForm::rows,
                                         .a = 0,
                                         .b = 0,
                                         .accumulate = accumulate},
                                        d, a, b, channel);
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_rows(float (&d)[N / 2], const std::uint32_t (&a)[4], Operand b,
                                       int channel, bool accumulate) {
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  emulator::instructions::multiply_rows({.type = dtype_of<Element>,
                                         .n = N,
                                         .form = emulator::ProductForm::left_registers,
                                         .a = 0,
                                         .b = 0,
                                         .accumulate = accumulate},
                                        d, a, b, channel);
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_weights(float (&d)[N / 2], const std::uint32_t (&p)[4], Operand v,
                                          int key) {
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  emulator::instructions::multiply_weights({.type = dtype_of<Element>,
                                            .n = N,
                                            .form = emulator::ProductForm::weights,
                                            .a = 0,
                                            .b = 0,
                                            .accumulate = true},
                                           d, p, v, key);
}
template <class Element, int N>
RINGLAB_KERNEL_CODE void multiply_columns(float (&d)[N / 2], Operand a, Operand b, int row,
                                          bool accumulate) {
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  emulator::instructions::multiply_columns({.type = dtype_of<Element>,
                                            .n = N,
                                            .form = emulator::ProductForm::columns,
                                            .a = 0,
                                            .b = 0,
                                            .accumulate = accumulate},
                                           d, a, b, row);
}

template <int Registers>
RINGLAB_KERNEL_CODE void take_registers() {
  emulator::instructions::take_registers(Registers);
}
template <int Registers>
RINGLAB_KERNEL_CODE void give_registers() {
  emulator::instructions::give_registers(Registers);
}

}  // namespace ringlab::cuda
