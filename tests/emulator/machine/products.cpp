#include "tests/emulator/machine/products.h"

#include <algorithm>
#include <utility>

#include "optimized/cuda/hopper/descriptor.h"
#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/matrix_read.h"
#include "tests/emulator/machine/numbers.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kThreads = 128;                    // of a warpgroup: four warps
constexpr std::uint32_t kHeldBits = 0x7fc0dead;  // a NaN that arithmetic does not make
const float kHeld = __builtin_bit_cast(float, kHeldBits);

Warpgroup& warpgroup_here() {
  const auto group = static_cast<std::size_t>(running_thread()->index / kThreads);
  return block_here().warpgroups[group];
}

/// Calls visit(element of the tile, register of `d`) for a thread's elements of a tile (64, n).
/// The accumulator layout of wgmma (PTX ISA, "Register Fragments for wgmma.mma_async"):
/// warp w holds rows 16 w … 16 w + 15; a thread holds two neighbouring columns of two
/// rows, 8 apart, per 8 columns.
template <class Visitor>
void for_fragment(int thread, int n, Visitor visit) {
  const int row = 16 * (thread / 32) + thread % 32 / 4;
  for (int index = 0; index < n / 2; ++index) {
    const int column = 8 * (index / 4) + 2 * (thread % 4) + index % 2;
    visit(static_cast<std::size_t>((row + 8 * (index / 2 % 2)) * n + column), index);
  }
}

/// (64, 16) from the four pairs of every thread, in the order of an mma A fragment.
std::vector<float> unpack_rows(DType type, const FourPairs& p) {
  std::vector<float> a(64 * 16);
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    const std::size_t row = 16 * (thread / 32) + thread % 32 / 4;
    for (std::size_t i = 0; i < 4; ++i) {
      unpack(type, p[thread][i], &a[(row + 8 * (i % 2)) * 16 + 8 * (i / 2) + 2 * (thread % 4)]);
    }
  }
  return a;
}

/// (columns, rows) of a matrix (rows, columns).
std::vector<float> transposed(const std::vector<float>& matrix, std::size_t rows,
                              std::size_t columns) {
  std::vector<float> result(matrix.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      result[column * rows + row] = matrix[row * columns + column];
    }
  }
  return result;
}

/// A (64, 16): from registers, or from shared memory, transposed in ProductForm::columns.
std::vector<float> left_operand(SharedWindow& shared, const ProductShape& shape,
                                const FourPairs& p) {
  if (shape.form == ProductForm::weights || shape.form == ProductForm::left_registers) {
    return unpack_rows(shape.type, p);
  }
  std::vector<float> a(64 * 16);
  if (shape.form == ProductForm::rows) {
    read_rows(shared, shape.type, shape.a, 64, a.data());
    return a;
  }
  read_columns(shared, shape.type, shape.a, 64, a.data());
  return transposed(a, 16, 64);
}

/// B (16, n): lies in shared memory as such, or as rows of 16 channels.
std::vector<float> right_operand(SharedWindow& shared, const ProductShape& shape) {
  const auto n = static_cast<std::size_t>(shape.n);
  std::vector<float> b(n * 16);
  if (shape.form == ProductForm::weights || shape.form == ProductForm::columns) {
    read_columns(shared, shape.type, shape.b, shape.n, b.data());
    return b;
  }
  read_rows(shared, shape.type, shape.b, shape.n, b.data());
  return transposed(b, n, 16);
}

/// d (64, n) = or += a (64, 16) b (16, n); adds up the 16 products first.
/// The order is a model: real tensor cores round otherwise, so bits may differ.
void multiply(const ProductShape& shape, const float* a, const float* b, float* d) {
  const auto n = static_cast<std::size_t>(shape.n);
  float sums[256];  // n is at most 256
  for (std::size_t row = 0; row < 64; ++row) {
    std::fill(sums, sums + n, 0.0f);
    for (std::size_t k = 0; k < 16; ++k) {
      const float left = a[row * 16 + k];
      const float* right = b + k * n;
      for (std::size_t column = 0; column < n; ++column) sums[column] += left * right[column];
    }
    float* out = d + row * n;
    if (!shape.accumulate) std::fill(out, out + n, 0.0f);
    for (std::size_t column = 0; column < n; ++column) out[column] += sums[column];
  }
}

void check_held(const float* d, int n) {
  const auto is_held = [](float x) { return __builtin_bit_cast(std::uint32_t, x) == kHeldBits; };
  if (!std::all_of(d, d + n / 2, is_held)) {
    fault("accumulators were changed while matrix products on them were under way");
  }
}

}  // namespace

Warpgroup::Member& Warpgroup::mine() {
  return members_[static_cast<std::size_t>(running_thread()->index % kThreads)];
}

void Warpgroup::begin() {
  mine().has_begun = true;
  mine().has_new_operands = false;
}

void Warpgroup::commit() { mine().groups.push_back(mine().issued); }

void Warpgroup::note_operands() { mine().has_new_operands = true; }

// Products are numbered from the first one of the warpgroup; the queue holds those from done_ on.
// Whichever thread comes first makes the entry, the others must issue the same.
Warpgroup::IssuedProduct& Warpgroup::product(const ProductShape& shape, std::uint64_t number) {
  const auto place = static_cast<std::size_t>(number - done_);
  if (place == queue_.size()) {
    IssuedProduct next;
    next.shape = shape;
    queue_.push_back(std::move(next));
  }
  if (queue_[place].shape != shape) {
    fault("matrix product {}: threads of the warpgroup issue different ones", number);
  }
  return queue_[place];
}

void Warpgroup::take_registers(IssuedProduct& product, float* d) {
  const int n = product.shape.n;
  // wgmma.fence: registers that ordinary code wrote may be read by products only after it.
  if (!mine().has_begun) fault("matrix product: products_begin() must precede new accumulators");
  if (!product.tile) {
    product.tile = std::make_shared<AccumulatorTile>(
        AccumulatorTile{n, std::vector<float>(static_cast<std::size_t>(64 * n), kHeld)});
    product.is_first_on_tile = true;
  }
  if (!product.is_first_on_tile) fault("matrix product: threads give different accumulators");
  for_fragment(running_thread()->index % kThreads, n,
               [&](std::size_t element, int index) { product.tile->values[element] = d[index]; });
  // Reading registers before the wait gives NaN; writing them is found at the next check.
  std::fill(d, d + n / 2, kHeld);
  mine().held.push_back({.d = d, .tile = product.tile, .last = mine().issued});
}

void Warpgroup::take_held(IssuedProduct& product, HeldRegisters& held) {
  if (held.tile->n != product.shape.n) fault("matrix product: N differs from the last one's");
  check_held(held.d, held.tile->n);
  if (!product.tile) product.tile = held.tile;
  if (product.tile != held.tile) fault("matrix product: threads give different accumulators");
  held.last = mine().issued;
}

void Warpgroup::issue(const ProductShape& shape, float* d, const std::uint32_t* p) {
  const int first_thread = running_thread()->index / kThreads * kThreads;
  ThreadBlock& block = block_here();
  if (block.launch.threads < first_thread + kThreads) {
    fault("matrix product: a warpgroup has four warps, this one fewer");
  }
  Member& member = mine();
  if (p && member.has_new_operands) {
    fault("matrix product: operands in registers changed, and no products_begin() followed");
  }
  // Runs only when all 128 threads have issued it, since warps need not be in step.
  IssuedProduct& next = product(shape, member.issued++);
  const auto held = std::find_if(member.held.begin(), member.held.end(),
                                 [d](const HeldRegisters& other) { return other.d == d; });
  if (held == member.held.end()) {
    take_registers(next, d);
  } else {
    take_held(next, *held);
  }
  if (p) {
    const auto thread = static_cast<std::size_t>(running_thread()->index % kThreads);
    std::copy(p, p + 4, next.p[thread].begin());
  }
  if (++next.issued_by < kThreads) return;
  // Jobs run at any later time and in any order; each does the oldest product that is left.
  block.scheduler.post([this, &block, first_thread] { do_next(block, first_thread); });
}

void Warpgroup::do_next(ThreadBlock& block, int first_thread) {
  IssuedProduct& next = queue_.front();
  const ProductShape& shape = next.shape;
  // Operands are read here and not when the product was issued: a buffer that was filled again too
  // early gives wrong numbers.
  const std::vector<float> a = left_operand(block.shared, shape, next.p);
  const std::vector<float> b = right_operand(block.shared, shape);
  multiply(shape, a.data(), b.data(), next.tile->values.data());
  queue_.pop_front();
  ++done_;
  for (int i = 0; i < kThreads; ++i) {
    Member& member = members_[static_cast<std::size_t>(i)];
    // Wakes threads whose awaited products are done, and no others.
    if (member.awaited == 0 || member.awaited > done_) continue;
    member.awaited = 0;
    block.scheduler.wake(&block.threads[static_cast<std::size_t>(first_thread + i)]);
  }
}

void Warpgroup::wait(int pending) {
  Member& member = mine();
  const std::size_t committed = member.groups.size();
  const auto kept = static_cast<std::size_t>(pending);
  // All groups but the last `pending` must be done; a group ends with its last product.
  const std::uint64_t covered = committed > kept ? member.groups[committed - 1 - kept] : 0;
  if (done_ < covered) {
    member.awaited = covered;
    block_here().scheduler.park({"products_wait<{}>()", pending});
  }
  release(member, running_thread()->index % kThreads, covered);
  // Yields also after a wait without work under way: others get a turn between any two steps.
  block_here().scheduler.maybe_yield();
}

void Warpgroup::release(Member& member, int thread, std::uint64_t covered) {
  // Registers are handed back when the last product on them is covered by the wait.
  std::erase_if(member.held, [&](const HeldRegisters& held) {
    if (held.last > covered) return false;
    check_held(held.d, held.tile->n);
    for_fragment(thread, held.tile->n, [&held](std::size_t element, int index) {
      held.d[index] = held.tile->values[element];
    });
    member.has_begun = false;
    return true;
  });
}

void Warpgroup::end_thread(int thread) {
  if (!members_[static_cast<std::size_t>(thread)].held.empty()) {
    fault("ends with matrix products under way that it did not wait for");
  }
}

namespace {

std::uint32_t operand_address(const Operand& operand) {
  // Eight rows are a period of the swizzle: descriptors count in those.
  if (operand.box_rows < 8 || operand.box_rows % 8 != 0) {
    fault("matrix product: boxes of {} rows", operand.box_rows);
  }
  return block_here().shared.address(operand.shared, 1, 16, "matrix product");
}

void check_begin(int begin) {
  if (begin < 0 || begin % 16 != 0) {
    fault("matrix product: channel or key {} is no multiple of 16", begin);
  }
}

}  // namespace

namespace instructions {

void multiply_rows(const ProductShape& without_descriptors, float* d, const Operand& a,
                   const Operand& b, int channel) {
  check_begin(channel);
  ProductShape shape = without_descriptors;
  shape.a = rows_descriptor(operand_address(a), a.box_rows, channel);
  shape.b = rows_descriptor(operand_address(b), b.box_rows, channel);
  warpgroup_here().issue(shape, d, nullptr);
}

void multiply_rows(const ProductShape& without_descriptors, float* d, const std::uint32_t (&a)[4],
                   const Operand& b, int channel) {
  check_begin(channel);
  ProductShape shape = without_descriptors;
  shape.b = rows_descriptor(operand_address(b), b.box_rows, channel);
  warpgroup_here().issue(shape, d, a);
}

void multiply_weights(const ProductShape& without_descriptors, float* d,
                      const std::uint32_t (&p)[4], const Operand& v, int key) {
  check_begin(key);
  ProductShape shape = without_descriptors;
  shape.b = columns_descriptor(operand_address(v), v.box_rows, key);
  warpgroup_here().issue(shape, d, p);
}

void multiply_columns(const ProductShape& without_descriptors, float* d, const Operand& a,
                      const Operand& b, int row) {
  check_begin(row);
  ProductShape shape = without_descriptors;
  shape.a = columns_descriptor(operand_address(a), a.box_rows, row);
  shape.b = columns_descriptor(operand_address(b), b.box_rows, row);
  warpgroup_here().issue(shape, d, nullptr);
}

void products_begin() { warpgroup_here().begin(); }
void products_commit() { warpgroup_here().commit(); }
void products_wait(int pending) { warpgroup_here().wait(pending); }
void note_operands() { warpgroup_here().note_operands(); }

void fence_async_proxy() {
  block_here().shared.fence();
  block_here().scheduler.maybe_yield();
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
