// The wire of stage 20: what comes through bit for bit, and that it is the engine's for a block.
#include "stages/20_compressed_wire/compressed_wire.h"

#include <cmath>
#include <limits>

#include "optimized/ring/host/wire.h"
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

template <class Element>
class CompressedRow : public ::testing::Test {};
using Elements = ::testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(CompressedRow, Elements);

/// A number of any size that Element has, with zeros, the largest, the least and what is no number.
template <class Element>
Element any_number(RandomRuns& runs) {
  const DTypeInfo& info = dtype_info(dtype_of<Element>);
  const double odd[] = {0.0,
                        -0.0,
                        info.max_finite,
                        info.min_subnormal,
                        std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()};
  if (runs.below(12) == 0) return static_cast<Element>(odd[runs.below(6)]);
  const double fraction = 1 + static_cast<double>(runs.below(1 << 20)) / (1 << 20);
  const int least = std::ilogb(info.min_subnormal), most = std::ilogb(info.max_finite);
  const auto exponent = static_cast<int>(least + runs.below(most - least + 1));
  return static_cast<Element>(std::ldexp(runs.below(2) == 1 ? fraction : -fraction, exponent));
}

TYPED_TEST(CompressedRow, is_what_the_engine_makes_of_a_block) {
  RandomRuns runs(20);
  for (int round = 0; round < repetitions(2000); ++round) {
    const std::int64_t channels = 1 + runs.below(ringlab::ring::kWireBlock);
    const auto count = static_cast<std::size_t>(channels);
    std::vector<TypeParam> row(count), ours(count), theirs(count);
    // Mostly of one size, so that codes of all kinds occur.
    const bool alike = runs.below(2) == 1;
    const TypeParam first = any_number<TypeParam>(runs);
    for (TypeParam& x : row) {
      x = alike ? static_cast<TypeParam>(static_cast<double>(first) *
                                         (static_cast<double>(runs.below(1000)) / 999))
                : any_number<TypeParam>(runs);
    }
    std::vector<Code> codes(count);
    Scale scale = 0;
    compressed_wire::pack(row.data(), 1, channels, codes.data(), &scale);
    compressed_wire::unpack(codes.data(), &scale, 1, channels, ours.data());
    const Extents extents{1, 1, 1, channels};
    std::vector<std::byte> wire(static_cast<std::size_t>(
        ringlab::ring::wire_bytes(WireFormat::fp8, dtype_of<TypeParam>, extents)));
    ringlab::ring::encode<TypeParam>(
        WireFormat::fp8, dense_view(static_cast<const TypeParam*>(row.data()), extents), wire);
    ringlab::ring::decode<TypeParam>(WireFormat::fp8, wire, dense_view(theirs.data(), extents));
    for (std::size_t c = 0; c < count; ++c) {
      const auto mine = static_cast<double>(ours[c]), other = static_cast<double>(theirs[c]);
      // What would round beyond the largest number is that here, and the code below it there.
      if (std::abs(mine) == dtype_info(dtype_of<TypeParam>).max_finite) continue;
      ASSERT_TRUE(mine == other || (std::isnan(mine) && std::isnan(other)))
          << static_cast<double>(row[c]) << " came as " << mine << ", the engine's as " << other;
    }
  }
}

TEST(CompressedWireTest, numbers_of_four_bits_come_through_bit_for_bit) {
  RandomRuns runs(4);
  for (int round = 0; round < repetitions(60); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    const RunOptions options = runs.options();
    AttentionTensors tensors = random_tensors(problem, runs.seed());
    for (Tensor<double>* tensor : {&tensors.k, &tensors.v}) {
      for (double& x : tensor->values())
        x = std::ldexp(static_cast<double>(runs.below(31) - 15), -3);
    }
    const AttentionInput input = tensors.input(problem);
    const AttentionOutput packed = stage_named("compressed_wire").run(input, options).output;
    const AttentionOutput exact = stage_named("slotted_ring").run(input, options).output;
    ASSERT_EQ(packed.out.values(), exact.out.values()) << describe(problem, options);
    ASSERT_EQ(packed.lse.values(), exact.lse.values()) << describe(problem, options);
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
