#include "tests/emulator/machine/warp.h"

#include <cstring>

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/numbers.h"

namespace ringlab::cuda::emulator {
namespace {

Warp& warp_here() {
  const Thread& thread = *running_thread();
  return thread.block->warps[static_cast<std::size_t>(thread.index / 32)];
}

struct Shuffle {
  std::uint32_t value;
  int source;
  std::uint32_t result;
};

// The last lane to come does the work of all: no lane sees half of a shuffle.
void do_shuffle(const Warp::Operands& operands) {
  for (void* lane : operands) {
    auto& mine = *static_cast<Shuffle*>(lane);
    mine.result = static_cast<Shuffle*>(operands[static_cast<std::size_t>(mine.source)])->value;
  }
}

std::uint32_t shuffle_from(const char* what, std::uint32_t value, int source) {
  if (source < 0 || source > 31) fault("{}: there is no lane {}", what, source);
  Shuffle mine{value, source, 0};
  warp_here().meet(what, &mine, do_shuffle);
  return mine.result;
}

/// Operands of a lane: the beginning of its row in shared memory, and its registers.
struct MatrixLoad {
  const std::byte* row;
  std::uint32_t* fragments;
};
struct MatrixStore {
  std::byte* row;
  const std::uint32_t* fragments;
};

// Lane 8 m + r has given the address of row r of matrix m.
std::uint16_t element(const Warp::Operands& operands, int matrix, int row, int column) {
  const auto& load =
      *static_cast<MatrixLoad*>(operands[static_cast<std::size_t>(8 * matrix + row)]);
  std::uint16_t bits;
  std::memcpy(&bits, load.row + 2 * column, sizeof(bits));
  return bits;
}

/// Lane l gets of every matrix the elements (l / 4, 2 (l % 4) + {0, 1}), or the transposed ones.
template <bool kTransposed>
void do_load(const Warp::Operands& operands) {
  for (int lane = 0; lane < 32; ++lane) {
    auto& mine = *static_cast<MatrixLoad*>(operands[static_cast<std::size_t>(lane)]);
    const int first = lane / 4;
    const int second = 2 * (lane % 4);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const std::uint32_t low = kTransposed ? element(operands, matrix, second, first)
                                            : element(operands, matrix, first, second);
      const std::uint32_t high = kTransposed ? element(operands, matrix, second + 1, first)
                                             : element(operands, matrix, first, second + 1);
      mine.fragments[matrix] = low | high << 16;
    }
  }
}

/// The opposite of do_load<false>.
void do_store(const Warp::Operands& operands) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<MatrixStore*>(operands[static_cast<std::size_t>(lane)]);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto& to =
          *static_cast<MatrixStore*>(operands[static_cast<std::size_t>(8 * matrix + lane / 4)]);
      std::memcpy(to.row + 4 * (lane % 4), &mine.fragments[matrix], sizeof(std::uint32_t));
    }
  }
}

// The row is 16 bytes and begins at a multiple of 16, as ldmatrix wants it.
void load(const char* what, std::uint32_t (&fragments)[4], const void* row,
          void (*act)(const Warp::Operands&)) {
  running_thread()->block->shared.address(row, 16, 16, what);
  MatrixLoad mine{static_cast<const std::byte*>(row), fragments};
  warp_here().meet(what, &mine, act);
  instructions::note_operands();
}

struct Multiply {
  DType type;
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

struct MmaOperands {
  float a[16][16];
  float b[16][8];
};

/// Fragments of m16n8k16: lane l has g = l / 4, t = l % 4; A (16, 16) rows g and g + 8, columns
/// 2 t + {0, 1} and 2 t + 8 + {0, 1}; B (16, 8) rows like A's columns, column g.
MmaOperands gather(const Warp::Operands& operands) {
  MmaOperands factors;
  const DType type = static_cast<Multiply*>(operands[0])->type;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<Multiply*>(operands[lane]);
    if (mine.type != type) fault("multiply_add(): lanes of a warp differ in the element type");
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    for (std::size_t i = 0; i < 4; ++i) {
      unpack(type, mine.a[i], &factors.a[g + 8 * (i % 2)][2 * t + 8 * (i / 2)]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      float pair[2];
      unpack(type, mine.b[i], pair);
      factors.b[2 * t + 8 * i][g] = pair[0];
      factors.b[2 * t + 8 * i + 1][g] = pair[1];
    }
  }
  return factors;
}

/// D (16, 8): rows g and g + 8, columns 2 t + {0, 1}.
void do_multiply(const Warp::Operands& operands) {
  const MmaOperands factors = gather(operands);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    float* d = static_cast<Multiply*>(operands[lane])->d;
    for (std::size_t i = 0; i < 4; ++i) {
      const float* row = factors.a[lane / 4 + 8 * (i / 2)];
      const std::size_t column = 2 * (lane % 4) + i % 2;
      float sum = 0;
      // Sixteen products first, then the accumulator: as for wgmma, a model of the order.
      for (std::size_t k = 0; k < 16; ++k) sum += row[k] * factors.b[k][column];
      d[i] += sum;
    }
  }
}

}  // namespace

void Warp::meet(const char* what, void* operands, void (*act)(const Operands&)) {
  Thread& thread = *running_thread();
  // Meeting after a lane has ended hangs or is undefined on a GPU; here it is a fault.
  if (ended_ > 0) fault("{}: other lanes of the warp have ended", what);
  if (arrived_ > 0 && std::strcmp(what, what_) != 0) {
    // Names differ: lanes of a warp that come to different instructions diverge.
    fault("lanes of a warp diverge: {} here, {} in {} other lanes", what, what_, arrived_);
  }
  what_ = what;
  operands_[static_cast<std::size_t>(thread.index % 32)] = operands;
  Scheduler& scheduler = thread.block->scheduler;
  if (++arrived_ < 32) {
    scheduler.park({what});
    return;
  }
  // Acts before lanes are woken: their results are in registers when they go on.
  act(operands_);
  arrived_ = 0;
  const int first = thread.index / 32 * 32;
  for (int lane = first; lane < first + 32; ++lane) {
    Thread& other = thread.block->threads[static_cast<std::size_t>(lane)];
    if (&other != &thread) scheduler.wake(&other);
  }
}

void Warp::end_lane(int lane) {
  // A lane that ends early would leave the others waiting for ever.
  if (arrived_ > 0) {
    fault("lane {} ends while {} other lanes of its warp are in {}", lane, arrived_, what_);
  }
  ++ended_;
}

namespace instructions {

void sync_warp() {
  warp_here().meet("sync_warp()", nullptr, [](const Warp::Operands&) {});
}

float shuffle_xor(float value, int mask) {
  const int lane = running_thread()->index % 32;
  return __builtin_bit_cast(
      float, shuffle_from("shuffle_xor()", __builtin_bit_cast(std::uint32_t, value), lane ^ mask));
}

std::uint32_t shuffle(std::uint32_t value, int lane) {
  return shuffle_from("shuffle()", value, lane);
}

void load_matrices(std::uint32_t (&fragments)[4], const void* row) {
  load("load_matrices()", fragments, row, do_load<false>);
}

void load_matrices_transposed(std::uint32_t (&fragments)[4], const void* row) {
  load("load_matrices_transposed()", fragments, row, do_load<true>);
}

void store_matrices(void* row, const std::uint32_t (&fragments)[4]) {
  running_thread()->block->shared.address(row, 16, 16, "store_matrices()");
  MatrixStore mine{static_cast<std::byte*>(row), fragments};
  warp_here().meet("store_matrices()", &mine, do_store);
}

void multiply_add(DType type, float (&d)[4], const std::uint32_t (&a)[4],
                  const std::uint32_t (&b)[2]) {
  Multiply mine{type, d, a, b};
  warp_here().meet("multiply_add()", &mine, do_multiply);
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
