// load_box: swizzled tiles, zeros outside, and the rules of the asynchronous proxy.
#include "tests/emulator/machine/boxes.h"

#include <cmath>

#include "optimized/cuda/hopper/tensor_map.h"
#include "reference/core/error.h"
#include "tests/emulator/kernels.h"
#include "tests/emulator/matrices.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kHeads = 3;
constexpr int kRows = 13;
constexpr int kChannels = 72;
constexpr int kBoxRows = 16;
constexpr std::uint32_t kBytes = kBoxRows * 128;

/// Heads one below the other.
Matrix<BFloat16> tensor() { return integers<BFloat16>(kHeads * kRows, kChannels, 3); }

TensorMap map_of(const Matrix<BFloat16>& matrix) {
  return emulator::make_tensor_map({.base = matrix.values.data(),
                                    .type = DType::bf16,
                                    .heads = kHeads,
                                    .rows = kRows,
                                    .channels = kChannels,
                                    .box_rows = kBoxRows});
}

struct Corner {
  int head;
  int row;
  int channel;
};

double expected_at(const Matrix<BFloat16>& matrix, const Corner& corner, int r, int c) {
  const int row = corner.row + r;
  const int channel = corner.channel + c;
  const bool inside = corner.head >= 0 && corner.head < kHeads && row >= 0 && row < kRows &&
                      channel >= 0 && channel < kChannels;
  return inside ? matrix.at(corner.head * kRows + row, channel) : 0;
}

BFloat16 element_of_box(const std::byte* box, int r, int c) {
  const auto unswizzled = static_cast<std::uint32_t>(128 * r + 2 * c);
  return *reinterpret_cast<const BFloat16*>(box + swizzle_128(unswizzled));
}

Barrier* box_barrier_at(int offset) { return reinterpret_cast<Barrier*>(shared_memory() + offset); }

void make_barrier(int offset, int arrivals) {
  if (thread_index() == 0) {
    init_barrier(box_barrier_at(offset), arrivals);
    publish_barriers();
  }
  sync_block();
}

const Launch kBoxLaunch{.threads = 64, .shared_bytes = 3 * kBytes};
constexpr int kBarrier = 2 * kBytes;

TEST(boxes, a_box_lies_swizzled_and_zeros_lie_where_there_is_no_tensor) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  for (const Corner corner : {Corner{0, 0, 0}, Corner{2, 5, 64}, Corner{1, -3, 8}, Corner{1, 12, 0},
                              Corner{3, 0, 0}, Corner{2, 40, 0}, Corner{0, 0, 128}}) {
    expect_no_fault(kBoxLaunch, [&] {
      make_barrier(kBarrier, 1);
      if (thread_index() == 7) {
        arrive_expecting(box_barrier_at(kBarrier), kBytes);
        load_box(shared_memory() + kBytes, &map, box_barrier_at(kBarrier), corner.head, corner.row,
                 corner.channel);
      }
      wait(box_barrier_at(kBarrier), 0, "full");
      if (thread_index() != 3) return;
      for (int r = 0; r < kBoxRows; ++r) {
        for (int c = 0; c < 64; ++c) {
          EXPECT_EQ(static_cast<double>(element_of_box(shared_memory() + kBytes, r, c)),
                    expected_at(matrix, corner, r, c));
        }
      }
    });
  }
}

struct Habits {
  std::uint32_t expected = 2 * kBytes;
  bool waits = true;
  bool publishes = true;
  int barrier_arrivals = 1;
};

/// Two boxes on one barrier; thread 40 reads an element of the second.
std::function<void()> two_boxes(const TensorMap& map, double& read, const Habits& habits) {
  return [&map, &read, habits] {
    if (thread_index() == 0) {
      init_barrier(box_barrier_at(kBarrier), habits.barrier_arrivals);
      if (habits.publishes) publish_barriers();
    }
    sync_block();
    if (thread_index() == 0) {
      arrive_expecting(box_barrier_at(kBarrier), habits.expected);
      load_box(shared_memory(), &map, box_barrier_at(kBarrier), 0, 0, 0);
      load_box(shared_memory() + kBytes, &map, box_barrier_at(kBarrier), 1, 0, 0);
    }
    if (habits.waits || thread_index() == 0) wait(box_barrier_at(kBarrier), 0, "full");
    if (thread_index() == 40) {
      read = static_cast<double>(element_of_box(shared_memory() + kBytes, 2, 3));
    }
  };
}

TEST(boxes, a_barrier_must_expect_all_bytes_and_be_waited_for) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  double read = 0;
  const auto is_right = [&] { return read == matrix.at(kRows + 2, 3); };
  EXPECT_EQ(count_wrong(kBoxLaunch, two_boxes(map, read, {}), is_right), 0);
  EXPECT_GT(count_wrong(kBoxLaunch, two_boxes(map, read, {.waits = false}), is_right), 20);
  EXPECT_GT(count_wrong(kBoxLaunch, two_boxes(map, read, {.expected = kBytes}), is_right), 20);
  expect_fault(kBoxLaunch, two_boxes(map, read, {.expected = 3 * kBytes}),
               "threads 0-63: full, barrier at shared offset 4096, parity 0");
  expect_fault(kBoxLaunch, two_boxes(map, read, {.barrier_arrivals = 2}), "deadlock");
  expect_fault(kBoxLaunch, two_boxes(map, read, {.publishes = false}), "publish_barriers()");
}

TEST(boxes, ordinary_writes_before_a_box_need_a_fence) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  const auto kernel = [&](bool fences) {
    return [&, fences] {
      make_barrier(kBarrier, 1);
      shared_memory()[thread_index()] = std::byte{1};
      if (fences) fence_async_proxy();
      sync_block();
      if (thread_index() == 0) {
        arrive_expecting(box_barrier_at(kBarrier), kBytes);
        load_box(shared_memory(), &map, box_barrier_at(kBarrier), 0, 0, 0);
      }
      wait(box_barrier_at(kBarrier), 0, "full");
    };
  };
  expect_no_fault(kBoxLaunch, kernel(true));
  expect_fault(kBoxLaunch, kernel(false), "no fence_async_proxy()");
}

TEST(boxes, writes_to_a_box_under_way_and_a_second_box_on_it_are_faults) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  const auto kernel = [&](int second_offset, bool writes) {
    return [&, second_offset, writes] {
      make_barrier(kBarrier, 1);
      if (thread_index() == 0) {
        arrive_expecting(box_barrier_at(kBarrier), 2 * kBytes);
        load_box(shared_memory(), &map, box_barrier_at(kBarrier), 0, 0, 0);
        if (writes) shared_memory()[5] = std::byte{};
        load_box(shared_memory() + second_offset, &map, box_barrier_at(kBarrier), 0, 0, 0);
      }
      wait(box_barrier_at(kBarrier), 0, "full");
    };
  };
  expect_no_fault(kBoxLaunch, kernel(kBytes, false));
  expect_fault(kBoxLaunch, kernel(1024, false), "another one");
  // Where the box lands before the write there is nothing to see.
  expect_fault(kBoxLaunch, kernel(kBytes, true), "was written while");
}

TEST(boxes, leaving_while_a_box_is_under_way_is_a_fault) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  expect_fault(
      kBoxLaunch,
      [&] {
        make_barrier(kBarrier, 1);
        if (thread_index() == 0) {
          arrive_expecting(box_barrier_at(kBarrier), kBytes);
          load_box(shared_memory(), &map, box_barrier_at(kBarrier), 0, 0, 0);
        }
      },
      "under way");
}

TEST(boxes, a_place_that_is_not_aligned_to_1024_bytes_is_a_fault) {
  const auto matrix = tensor();
  const TensorMap map = map_of(matrix);
  expect_fault(
      kBoxLaunch,
      [&] {
        make_barrier(kBarrier, 1);
        load_box(shared_memory() + 512, &map, box_barrier_at(kBarrier), 0, 0, 0);
      },
      "no multiple of 1024");
}

TEST(tensor_map, sizes_that_no_map_has_are_usage_errors) {
  alignas(16) const BFloat16 values[64] = {};
  const BoxedTensor good{
      .base = values, .type = DType::bf16, .heads = 1, .rows = 1, .channels = 64, .box_rows = 64};
  EXPECT_NO_THROW(emulator::make_tensor_map(good));
  const auto refused = [&good](auto change) {
    BoxedTensor tensor = good;
    change(tensor);
    EXPECT_THROW(emulator::make_tensor_map(tensor), Error);
  };
  refused([](BoxedTensor& t) { t.rows = 0; });
  refused([](BoxedTensor& t) { t.heads = std::int64_t{1} << 31; });
  refused([](BoxedTensor& t) { t.channels = 60; });
  refused([](BoxedTensor& t) { t.box_rows = 0; });
  refused([](BoxedTensor& t) { t.box_rows = 264; });
  refused([](BoxedTensor& t) { t.box_rows = 12; });
  refused([](BoxedTensor& t) { t.type = DType::f64; });
  refused([](BoxedTensor& t) { t.base = static_cast<const BFloat16*>(t.base) + 1; });
  refused([](BoxedTensor& t) { t.base = nullptr; });
}

TEST(tensor_map, what_is_no_map_is_a_fault) {
  const TensorMap map = {};
  expect_fault(
      kBoxLaunch,
      [&] {
        make_barrier(kBarrier, 1);
        load_box(shared_memory(), &map, box_barrier_at(kBarrier), 0, 0, 0);
      },
      "no tensor map");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
