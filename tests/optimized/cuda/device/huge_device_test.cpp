// Tensors of more than 2^31 elements: what lies beyond them is found, in Q and out, in K and in V.
//
// The tensors repeat one piece, so that far away everything is as it is at the beginning, to the
// bit.
#include <algorithm>
#include <random>
#include <vector>

#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/streams/device_kernels.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/device/first_difference.h"

namespace ringlab::cuda {
namespace {

using Element = BFloat16;

constexpr std::int64_t kChannels = 64;
constexpr std::int64_t kPiece = 24576;  // rows: whole tiles of 192 and of 128
constexpr std::int64_t kHuge = ((std::int64_t{1} << 31) / kChannels / kPiece + 2) * kPiece;
constexpr std::int64_t kSeen = 1024;
static_assert(kHuge * kChannels > std::int64_t{1} << 31);
static_assert(kPiece % kSeen == 0);

std::vector<Element> piece(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Element> values;
  for (std::int64_t i = 0; i < kPiece * kChannels; ++i) values.emplace_back(normal(random));
  return values;
}

DeviceTensor<Element> repeated(const std::vector<Element>& values, std::int64_t rows) {
  DeviceTensor<Element> tensor(0, rows * kChannels);
  for (std::int64_t row = 0; row < rows; row += kPiece) {
    const std::int64_t count = std::min(kPiece, rows - row) * kChannels;
    tensor.write(row * kChannels, std::span(values).first(static_cast<std::size_t>(count)));
  }
  return tensor;
}

struct Sizes {
  std::int64_t queries = 0, keys = 0;
};

class Huge : public DeviceTest<Needs::any_kernel> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    constexpr std::int64_t kNeeded = std::int64_t{12} << 30;
    if (device_memory(0).free < kNeeded) GTEST_SKIP() << "less than 12 GiB of memory are free";
    const bool is_hopper = device_facts(0).compute_capability == 90;
    kernels_ = ring::device_kernels<Element>(
        is_hopper ? ring::ForwardKernel::hopper : ring::ForwardKernel::portable, shape({1, 1}));
  }
  static Shape shape(const Sizes& sizes) {
    return {.q_tokens = sizes.queries,
            .kv_tokens = sizes.keys,
            .head_dim = kChannels,
            .v_dim = kChannels};
  }

  /// Out of queries that all see the last `seen` keys.
  DeviceTensor<Element> attend(const Sizes& sizes, std::int64_t seen) const {
    const DeviceTensor<Element> q = repeated(piece(1), sizes.queries);
    const DeviceTensor<Element> k = repeated(piece(2), sizes.keys);
    const DeviceTensor<Element> v = repeated(piece(3), sizes.keys);
    DeviceTensor<Element> out(0, q.size());
    const DeviceTensor<float> lse(0, sizes.queries);
    const KeyRange last{static_cast<std::int32_t>(sizes.keys - seen),
                        static_cast<std::int32_t>(sizes.keys)};
    const std::vector<KeyRange> host_rows(static_cast<std::size_t>(sizes.queries), last);
    const std::vector<TileKeys> host_tiles =
        visible_to_tiles(host_rows, kernels_.forward_tile_queries);
    const DeviceTensor<KeyRange> rows(0, std::span<const KeyRange>(host_rows));
    const DeviceTensor<TileKeys> tiles(0, std::span<const TileKeys>(host_tiles));
    kernels_.forward(
        {.shape = {.queries = static_cast<std::int32_t>(sizes.queries),
                   .keys = static_cast<std::int32_t>(sizes.keys),
                   .head_dim = kChannels,
                   .v_dim = kChannels},
         .q = q.data(),
         .k = k.data(),
         .v = v.data(),
         .mask = {.rows = rows.data(), .tiles = tiles.data(), .host_rows = host_rows.data()},
         .scale = 0.18f,
         .running = {},
         .out = out.data(),
         .lse = lse.data()},
        nullptr);
    wait_for_device(0);
    return out;
  }

  ring::DeviceKernels<Element> kernels_;
};

TEST_F(Huge, queries_and_outputs_are_found) {
  const DeviceTensor<Element> out = attend({.queries = kHuge, .keys = kSeen}, kSeen);
  const std::int64_t period = kPiece * kChannels, others = out.size() - period;
  EXPECT_EQ(first_difference(out.data(), out.data() + period, others), others);
  const DeviceTensor<Element> small = attend({.queries = kPiece, .keys = kSeen}, kSeen);
  EXPECT_EQ(first_difference(out.data(), small.data(), period), period);
}

TEST_F(Huge, keys_and_values_are_found) {
  const DeviceTensor<Element> far = attend({.queries = 192, .keys = kHuge}, kSeen);
  const DeviceTensor<Element> near = attend({.queries = 192, .keys = kPiece}, kSeen);
  EXPECT_EQ(first_difference(far.data(), near.data(), far.size()), far.size());
}

}  // namespace
}  // namespace ringlab::cuda
