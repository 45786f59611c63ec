// One small kernel for each instruction of device_code.h: on the emulated GPU and on a real one.
//
// A kernel is a value that is called by every thread; what it points to is the machine's memory.
// Inputs are small integers, so that results are exact whatever the order of additions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/device_code.h"
#include "optimized/cuda/hopper/descriptor.h"
#include "optimized/cuda/hopper/warp_boxes.cuh"

namespace ringlab::cuda {

/// out (threads, 33): what comes of every exchange of bits, and from the lane five further on.
struct ShuffleBody {
  static constexpr int kThreads = 64;
  static constexpr int kSharedBytes = 0;
  float* out;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int thread = thread_index(), lane = thread % 32;
    for (int mask = 0; mask < 32; ++mask) {
      out[33 * thread + mask] = shuffle_xor(static_cast<float>(thread), mask);
    }
    out[33 * thread + 32] =
        static_cast<float>(shuffle(static_cast<std::uint32_t>(thread), (lane + 5) % 32));
  }
};

/// out (lanes, 8): four fragments of matrices of which element (r, c) is 64 m + 8 r + c, and four
/// of the transposed ones.
struct LoadMatricesBody {
  static constexpr int kThreads = 32;
  static constexpr int kSharedBytes = 512;
  std::uint32_t* out;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int lane = thread_index();
    auto* numbers = reinterpret_cast<std::uint16_t*>(shared_memory());
    for (int i = lane; i < 256; i += 32) numbers[i] = static_cast<std::uint16_t>(i);
    sync_block();
    std::uint32_t straight[4], transposed[4];
    load_matrices(straight, numbers + 8 * lane);
    load_matrices_transposed(transposed, numbers + 8 * lane);
    for (int m = 0; m < 4; ++m) {
      out[8 * lane + m] = straight[m];
      out[8 * lane + 4 + m] = transposed[m];
    }
  }
};

/// d (16, 8) += a (16, 16) times b (8, 16) transposed, by ldmatrix and mma.sync.
template <class Element>
struct MultiplyAddBody {
  static constexpr int kThreads = 32;
  static constexpr int kSharedBytes = 768;
  const Element* a;
  const Element* b;
  float* d;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int lane = thread_index();
    auto* shared = reinterpret_cast<Element*>(shared_memory());
    for (int i = lane; i < 256; i += 32) shared[i] = a[i];
    for (int i = lane; i < 128; i += 32) shared[256 + i] = b[i];
    sync_block();
    std::uint32_t left[4], right[4];
    load_matrices(left, shared + (lane % 16) * 16 + lane / 16 * 8);
    load_matrices(right, shared + 256 + (lane % 8) * 16 + lane / 8 % 2 * 8);
    const auto place = [&](int i) { return (lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2; };
    float sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = d[place(i)];
    const std::uint32_t pair[2] = {right[0], right[1]};
    multiply_add<Element>(sum, left, pair);
    for (int i = 0; i < 4; ++i) d[place(i)] = sum[i];
  }
};

/// to (threads, 4): from, zeros for every third thread; by way of another thread's copy.
struct CopyBody {
  static constexpr int kThreads = 64;
  static constexpr int kSharedBytes = 2048;
  const float* from;
  float* to;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int thread = thread_index();
    auto* shared = reinterpret_cast<float*>(shared_memory());
    for (int i = 0; i < 4; ++i) shared[4 * thread + i] = -1;
    sync_block();
    copy_16_bytes(shared + 4 * thread, from + 4 * thread, thread % 3 != 0);
    commit_copies();
    copy_16_bytes(shared + 256 + 4 * thread, from, true);
    commit_copies();
    wait_for_copies<1>();
    sync_block();
    const int other = kThreads - 1 - thread;
    for (int i = 0; i < 4; ++i) to[4 * other + i] = shared[4 * other + i];
    wait_for_copies<0>();
  }
};

/// Named barriers: warp 0 hands over to warp 2. out (32).
struct NamedBarrierBody {
  static constexpr int kThreads = 96;
  static constexpr int kSharedBytes = 128;
  float* out;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int thread = thread_index();
    auto* shared = reinterpret_cast<float*>(shared_memory());
    if (thread < 32) {
      shared[thread] = static_cast<float>(3 * thread + 1);
      arrive_threads(3, 64);
    } else if (thread >= 64) {
      sync_threads(3, 64);
      out[thread - 64] = shared[95 - thread];
    }
  }
};

/// sum += 1 by every thread; tickets (counted threads): each number once.
struct AtomicBody {
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = 0;
  static constexpr int kBlocks = 4;
  float* sum;
  int* counter;
  int* tickets;
  RINGLAB_KERNEL_CODE void operator()() const {
    atomic_add(sum, 1.0f);
    tickets[block_index() * kThreads + thread_index()] = atomic_add(counter, 1);
  }
};

/// sums (2) += 1 and 3 by every thread.
struct AtomicPairBody {
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = 0;
  static constexpr int kBlocks = 4;
  float* sums;
  RINGLAB_KERNEL_CODE void operator()() const { atomic_add_pair(sums, 1.0f, 3.0f); }
};

/// pairs (threads): packed numbers; powers (threads): 2^-thread.
template <class Element>
struct NumbersBody {
  static constexpr int kThreads = 96;
  static constexpr int kSharedBytes = 0;
  const float* values;  // (2 threads)
  std::uint32_t* pairs;
  float* powers;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int thread = thread_index();
    pairs[thread] = pack<Element>(values[2 * thread], values[2 * thread + 1]);
    powers[thread] = exp2_approx(static_cast<float>(-thread));
  }
};

/// Barriers in shared memory: warp 0 makes numbers, warp 1 adds them up, through two stages.
struct PipelineBody {
  static constexpr int kThreads = 64;
  static constexpr int kSharedBytes = 512;
  static constexpr int kItems = 9;
  float* sums;  // (32)
  RINGLAB_KERNEL_CODE static Barrier* barrier(int number) {
    return reinterpret_cast<Barrier*>(shared_memory() + 256 + 8 * number);
  }
  RINGLAB_KERNEL_CODE void operator()() const {
    auto* numbers = reinterpret_cast<int*>(shared_memory());
    if (thread_index() == 0) {
      for (int i = 0; i < 4; ++i) init_barrier(barrier(i), 32);
      publish_barriers();
    }
    sync_block();
    const int lane = thread_index() % 32;
    int mine = 0;
    for (int i = 0; i < kItems; ++i) {
      const int stage = i % 2, round = i / 2 % 2;
      if (thread_index() < 32) {
        wait(barrier(2 + stage), 1 - round, "empty");
        numbers[32 * stage + lane] = i + lane;
        arrive(barrier(stage));
      } else {
        wait(barrier(stage), round, "full");
        mine += numbers[32 * stage + lane];
        arrive(barrier(2 + stage));
      }
    }
    if (thread_index() >= 32) sums[lane] = static_cast<float>(mine);
  }
};

/// out (box rows, 64): a box of a tensor, unswizzled.
struct LoadBoxBody {
  static constexpr int kThreads = 64;
  static constexpr int kBoxRows = 16;
  static constexpr std::uint32_t kBytes = kBoxRows * kBoxRowBytes;
  static constexpr int kSharedBytes = static_cast<int>(kBytes) + 8;
  TensorMap map;
  int head, row, channel;
  std::uint16_t* out;
  RINGLAB_KERNEL_CODE void operator()() const {
    auto* full = reinterpret_cast<Barrier*>(shared_memory() + kBytes);
    if (thread_index() == 0) {
      init_barrier(full, 1);
      publish_barriers();
    }
    sync_block();
    if (thread_index() == 0) {
      arrive_expecting(full, kBytes);
      load_box(shared_memory(), &map, full, head, row, channel);
    }
    wait(full, 0, "full");
    for (int i = thread_index(); i < kBoxRows * kBoxChannels; i += kThreads) {
      const std::uint32_t place = swizzle_128(static_cast<std::uint32_t>(2 * i));
      out[i] = *reinterpret_cast<const std::uint16_t*>(shared_memory() + place);
    }
  }
};

/// A box of 16 rows goes to a tensor: element (r, c) is 64 r + c, by stmatrix.
struct StoreBoxBody {
  static constexpr int kThreads = 32;
  static constexpr int kSharedBytes = kWarpBoxBytes;
  TensorMap map;
  int head, row, channel;
  RINGLAB_KERNEL_CODE void operator()() const {
    const int lane = thread_index();
    for (int first = 0; first < kBoxChannels; first += 16) {
      const auto pair = [&](int r, int c) {
        const int low = 64 * (lane / 4 + r) + first + 2 * (lane % 4) + c;
        return static_cast<std::uint32_t>(low | (low + 1) << 16);
      };
      store_matrices(shared_memory() + fragment_place(first),
                     {pair(0, 0), pair(8, 0), pair(0, 8), pair(8, 8)});
    }
    fence_async_proxy();
    sync_warp();
    if (lane != 0) return;
    store_box(&map, shared_memory(), head, row, channel);
    commit_boxes();
    wait_for_boxes<0>();
  }
};

/// A box of 16 rows of f32 is added to a tensor by every block: element (r, c) is 32 r + c.
struct AddBoxBody {
  static constexpr int kThreads = 32;
  static constexpr int kSharedBytes = kWarpBoxBytes;
  TensorMap map;
  int head, row, channel;
  RINGLAB_KERNEL_CODE void operator()() const {
    for (int i = thread_index(); i < kWarpBoxBytes / 4; i += kThreads) {
      const std::uint32_t place = swizzle_128(static_cast<std::uint32_t>(4 * i));
      *reinterpret_cast<float*>(shared_memory() + place) = static_cast<float>(i);
    }
    fence_async_proxy();
    sync_warp();
    if (thread_index() != 0) return;
    add_box(&map, shared_memory(), head, row, channel);
    commit_boxes();
    wait_for_boxes<0>();
  }
};

/// A matrix (rows, columns), dense, as boxes of 64 channels; by all threads.
template <class Element>
RINGLAB_KERNEL_CODE void store_as_boxes(std::byte* shared, const Element* matrix, int rows,
                                        int columns, int box_rows) {
  const int threads = 128;
  for (int i = thread_index(); i < rows * columns; i += threads) {
    const int row = i / columns, column = i % columns;
    const auto box = static_cast<std::uint32_t>(column / kBoxChannels * box_rows) * kBoxRowBytes;
    const std::uint32_t place =
        swizzle_128(box + static_cast<std::uint32_t>(row * static_cast<int>(kBoxRowBytes) +
                                                     column % kBoxChannels * 2));
    *reinterpret_cast<Element*>(shared + place) = matrix[i];
  }
  fence_async_proxy();
}

/// The place in (64, N) of what a thread of a warpgroup holds in register `i`.
template <int N>
RINGLAB_KERNEL_CODE int place_of_register(int i) {
  const int thread = thread_index() % 128;
  const int row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2);
  return row * N + 8 * (i / 4) + 2 * (thread % 4) + i % 2;
}

/// Ends the products that a warpgroup has issued; d (64, N) becomes their sum.
template <int N>
RINGLAB_KERNEL_CODE void end_products(float (&sum)[N / 2], float* d) {
  products_commit();
  products_wait<0>();
  hold(sum);
  RINGLAB_UNROLL
  for (int i = 0; i < N / 2; ++i) d[place_of_register<N>(i)] = sum[i];
}

/// d (64, N) = a (64, channels) times b (N, channels) transposed, channels from `first` on; a comes
/// from shared memory or from registers.
template <class Element, int N, bool kLeftInRegisters = false>
struct RowProductBody {
  static constexpr int kThreads = 128;
  static constexpr int kChannels = 192;
  static constexpr int kBoxes = kChannels / kBoxChannels;
  static constexpr int kSharedBytes = kBoxes * (64 + N) * static_cast<int>(kBoxRowBytes);
  const Element* a;
  const Element* b;
  int first;
  float* d;
  RINGLAB_KERNEL_CODE void operator()() const {
    std::byte* const left = shared_memory();
    std::byte* const right = left + kBoxes * 64 * static_cast<int>(kBoxRowBytes);
    store_as_boxes(left, a, 64, kChannels, 64);
    store_as_boxes(right, b, N, kChannels, N);
    sync_block();
    float sum[N / 2];
    RINGLAB_UNROLL
    for (int i = 0; i < N / 2; ++i) sum[i] = 1000;  // overwritten
    if constexpr (kLeftInRegisters) {
      multiply_registers(sum, left, right);
    } else {
      products_begin();
      for (int channel = first; channel < kChannels; channel += 16) {
        multiply_rows<Element, N>(sum, {left, 64}, {right, N}, channel, channel > first);
      }
    }
    end_products<N>(sum, d);
  }
  RINGLAB_KERNEL_CODE void multiply_registers(float (&sum)[N / 2], const std::byte* left,
                                              std::byte* right) const {
    std::uint32_t fragments[kChannels / 16][4];
    RINGLAB_UNROLL
    for (int step = 0; step < kChannels / 16; ++step) {
      const int box = 16 * step / kBoxChannels * 64 * static_cast<int>(kBoxRowBytes);
      load_matrices(fragments[step],
                    left + box + thread_index() / 32 * kWarpBoxBytes + fragment_place(16 * step));
    }
    products_begin();
    RINGLAB_UNROLL
    for (int step = 0; step < kChannels / 16; ++step) {
      const int channel = 16 * step;
      if (channel < first) continue;
      multiply_rows<Element, N>(sum, fragments[step], {right, N}, channel, channel > first);
    }
  }
};

/// d (64, N) += p (64, 32) in registers times keys 16 … 47 of v (64, N).
template <class Element, int N>
struct WeightProductBody {
  static constexpr int kThreads = 128;
  static constexpr int kBoxRows = 64;
  static constexpr int kSharedBytes = N / kBoxChannels * kBoxRows * static_cast<int>(kBoxRowBytes);
  const Element* p;
  const Element* v;
  float* d;
  RINGLAB_KERNEL_CODE void operator()() const {
    store_as_boxes(shared_memory(), v, 64, N, kBoxRows);
    sync_block();
    const int row = 16 * (thread_index() / 32) + thread_index() % 32 / 4;
    const auto pair = [&](int r, int k) {
      return pack<Element>(widened(p[32 * r + k]), widened(p[32 * r + k + 1]));
    };
    std::uint32_t weights[2][4];
    RINGLAB_UNROLL
    for (int step = 0; step < 2; ++step) {
      const int k = 16 * step + 2 * (thread_index() % 4);
      weights[step][0] = pair(row, k);
      weights[step][1] = pair(row + 8, k);
      weights[step][2] = pair(row, k + 8);
      weights[step][3] = pair(row + 8, k + 8);
    }
    float sum[N / 2];
    RINGLAB_UNROLL
    for (int i = 0; i < N / 2; ++i) sum[i] = d[place_of_register<N>(i)];
    products_begin();
    multiply_weights<Element, N>(sum, weights[0], {shared_memory(), kBoxRows}, 16);
    multiply_weights<Element, N>(sum, weights[1], {shared_memory(), kBoxRows}, 32);
    end_products<N>(sum, d);
  }
  RINGLAB_KERNEL_CODE static float widened(Element x) { return static_cast<float>(x); }
};

/// d (64, N) = a (rows, 64) transposed times b (rows, N), rows from `first` on.
template <class Element, int N>
struct ColumnProductBody {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 64;
  static constexpr int kSharedBytes =
      (1 + N / kBoxChannels) * kRows * static_cast<int>(kBoxRowBytes);
  const Element* a;
  const Element* b;
  int first;
  float* d;
  RINGLAB_KERNEL_CODE void operator()() const {
    std::byte* const left = shared_memory();
    std::byte* const right = left + kRows * static_cast<int>(kBoxRowBytes);
    store_as_boxes(left, a, kRows, 64, kRows);
    store_as_boxes(right, b, kRows, N, kRows);
    sync_block();
    float sum[N / 2];
    RINGLAB_UNROLL
    for (int i = 0; i < N / 2; ++i) sum[i] = 1000;  // overwritten
    products_begin();
    for (int row = first; row < kRows; row += 16) {
      multiply_columns<Element, N>(sum, {left, kRows}, {right, kRows}, row, row > first);
    }
    end_products<N>(sum, d);
  }
};

}  // namespace ringlab::cuda
