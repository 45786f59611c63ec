// wgmma: matrix products of a warpgroup, under way until somebody waits for them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "optimized/cuda/device_types.h"
#include "reference/core/dtype.h"

namespace ringlab::cuda::emulator {

struct ThreadBlock;

/// The source of A, and which operands are transposed.
enum class ProductForm {
  rows,            ///< shared memory; neither
  left_registers,  ///< registers; neither
  weights,         ///< registers; B
  columns,         ///< shared memory; both
};

/// A left operand in registers: each of 128 threads holds four packed pairs of it.
using FourPairs = std::array<std::array<std::uint32_t, 4>, 128>;

/// A wgmma instruction's fields, the same for all 128 threads.
struct ProductShape {
  DType type;
  int n;
  ProductForm form;
  std::uint64_t a;  ///< descriptors
  std::uint64_t b;
  bool accumulate;

  bool operator==(const ProductShape&) const = default;
};

/// The accumulators (64, n) of products under way. Registers are copied in at the first product and
/// out at the wait that covers the last; in between they hold NaN.
struct AccumulatorTile {
  int n;
  std::vector<float> values;
};

/// Products happen one after the other, each at a random time after all four warps issued it, and
/// at the latest when a products_wait() needs it; shared memory is read at that time. Faults: no
/// products_begin() before, registers touched meanwhile, warps that issue different products,
/// operands written without a fence.
class Warpgroup {
 public:
  void begin();
  void commit();
  void wait(int pending);
  void note_operands();  ///< registers that may be operands have changed
  /// A thread's part: its accumulators and, where A comes from registers, its four pairs.
  void issue(const ProductShape& shape, float* d, const std::uint32_t* p);
  void end_thread(int thread);

 private:
  struct IssuedProduct {
    ProductShape shape;
    std::shared_ptr<AccumulatorTile> tile;
    bool is_first_on_tile = false;
    FourPairs p = {};
    int issued_by = 0;
  };
  struct HeldRegisters {  ///< registers that belong to products under way
    float* d;
    std::shared_ptr<AccumulatorTile> tile;
    std::uint64_t last;  ///< number of the last product on them, plus 1
  };
  struct Member {
    std::uint64_t issued = 0;
    std::vector<std::uint64_t> groups;  ///< products issued when each was committed
    std::vector<HeldRegisters> held;
    std::uint64_t awaited = 0;  ///< parked until so many products happened
    bool has_begun = false;
    bool has_new_operands = false;
  };
  Member& mine();
  IssuedProduct& product(const ProductShape& shape, std::uint64_t number);
  void take_registers(IssuedProduct& product, float* d);
  void take_held(IssuedProduct& product, HeldRegisters& held);
  void do_next(ThreadBlock& block, int first_thread);
  void release(Member& member, int thread, std::uint64_t covered);

  std::array<Member, 128> members_;
  std::deque<IssuedProduct> queue_;  ///< not yet done
  std::uint64_t done_ = 0;
};

namespace instructions {

/// Make the descriptors and issue.
void multiply_rows(const ProductShape& without_descriptors, float* d, const Operand& a,
                   const Operand& b, int channel);
void multiply_rows(const ProductShape& without_descriptors, float* d, const std::uint32_t (&a)[4],
                   const Operand& b, int channel);
void multiply_weights(const ProductShape& without_descriptors, float* d,
                      const std::uint32_t (&p)[4], const Operand& v, int key);
void multiply_columns(const ProductShape& without_descriptors, float* d, const Operand& a,
                      const Operand& b, int row);
void products_begin();
void products_commit();
void products_wait(int pending);
void note_operands();
void fence_async_proxy();

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
