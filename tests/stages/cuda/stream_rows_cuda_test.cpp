// What Thrust does to the rows of a streamed ring, on a device, against the host. Skips without one.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "reference/core/machine/machine_error.h"
#include "stages/common/finished_row.h"
#include "stages/common/stream_rows.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/device/guarded.h"

namespace ringlab::stages::testing {
namespace {

using ringlab::cuda::DeviceTest;
using ringlab::cuda::Guarded;
using ringlab::cuda::Needs;

/// Rows on the host, every seventh of which saw nothing, and whose results are not written yet.
template <class Element>
struct HostRows {
  using Real = Accumulator<Element>;
  std::vector<SoftmaxState<Real>> states;
  std::vector<Real> accs;
  std::vector<Element> out;
  std::vector<Real> lse;

  HostRows(std::int64_t rows, std::int64_t v_dim) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rows));
    std::normal_distribution<double> normal;
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool empty = row % 7 == 6;
      if (empty) states.push_back({});
      if (!empty) {
        states.push_back({static_cast<Real>(30 * normal(random)),
                          static_cast<Real>(std::exp(5 * std::abs(normal(random))))});
      }
      for (std::int64_t c = 0; c < v_dim; ++c) {
        accs.push_back(empty ? Real(0) : static_cast<Real>(std::exp(9 * normal(random))));
      }
    }
    constexpr double kUnwritten = std::numeric_limits<double>::quiet_NaN();
    out.assign(accs.size(), static_cast<Element>(kUnwritten));
    lse.assign(states.size(), static_cast<Real>(kUnwritten));
  }
};

/// The same on a device, between canaries.
template <class Element>
struct GuardedRows {
  using Real = Accumulator<Element>;
  Guarded<SoftmaxState<Real>> states;
  Guarded<Real> accs;
  Guarded<Element> out;
  Guarded<Real> lse;

  explicit GuardedRows(const HostRows<Element>& host)
      : states(host.states), accs(host.accs), out(host.out), lse(host.lse) {}
  DeviceRows<Element> rows(std::int64_t count, std::int64_t v_dim) const {
    return {.rank = 0,
            .device = 0,
            .rows = count,
            .v_dim = v_dim,
            .states = states.data(),
            .accs = accs.data(),
            .out = out.data(),
            .lse = lse.data()};
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

struct Size {
  std::int64_t rows = 0, v_dim = 0;
};
constexpr Size kSizes[] = {{0, 3}, {1, 1}, {7, 5}, {33, 9}, {1000, 64}, {70001, 17}};

template <class Element>
class StreamRowsCuda : public DeviceTest<Needs::any_kernel> {};
using Elements = ::testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(StreamRowsCuda, Elements);

TYPED_TEST(StreamRowsCuda, are_cleared_to_the_identity_and_nothing_else_is_written) {
  using Real = Accumulator<TypeParam>;
  for (const auto& [rows, v_dim] : kSizes) {
    const HostRows<TypeParam> host(rows, v_dim);
    const GuardedRows<TypeParam> device(host);
    const auto stream = ringlab::cuda::make_stream(0);
    rows_on_streams<TypeParam>().clear(device.rows(rows, v_dim), stream.get());
    ringlab::cuda::wait_for_device(0);
    for (const auto& state : device.states.values("states")) {
      ASSERT_EQ(state.row_max, kEmptyRowMax<Real>);
      ASSERT_EQ(state.row_sum, Real(0));
    }
    const std::vector<Real> zeros(host.accs.size());
    EXPECT_TRUE(same_bits(device.accs.values("accs"), zeros));
    device.out.expect_unchanged(host.out, "out");
    device.lse.expect_unchanged(host.lse, "lse");
  }
}

TYPED_TEST(StreamRowsCuda, are_finished_with_the_hosts_bits_but_for_the_logarithm) {
  using Real = Accumulator<TypeParam>;
  for (const auto& [rows, v_dim] : kSizes) {
    const HostRows<TypeParam> host(rows, v_dim);
    const GuardedRows<TypeParam> device(host);
    const auto stream = ringlab::cuda::make_stream(0);
    rows_on_streams<TypeParam>().finish(device.rows(rows, v_dim), stream.get());
    ringlab::cuda::wait_for_device(0);
    std::vector<TypeParam> out;
    for (std::size_t at = 0; at < host.accs.size(); ++at) {
      const auto& state = host.states[at / static_cast<std::size_t>(v_dim)];
      out.push_back(finished_value<TypeParam>(state, host.accs[at]));
    }
    EXPECT_TRUE(same_bits(device.out.values("out"), out));
    const std::vector<Real> lse = device.lse.values("lse");
    for (std::size_t row = 0; row < lse.size(); ++row) {
      const Real want = finished_lse(host.states[row]);
      if (std::isinf(want)) {
        ASSERT_EQ(lse[row], want);
        continue;
      }
      // Two logarithms of at most an ulp of error each, then one rounding of the sum each.
      const Real log_size = std::log(host.states[row].row_sum);
      const Real most =
          std::numeric_limits<Real>::epsilon() * (2 * std::abs(log_size) + std::abs(want));
      ASSERT_LE(std::abs(lse[row] - want), most) << row;
    }
    device.states.expect_unchanged(host.states, "states");
    device.accs.expect_unchanged(host.accs, "accs");
  }
}

TEST(StreamRowsWithoutDevice, fail_with_an_error_that_names_rank_device_and_call) {
  if (ringlab::cuda::why_no_gpu().empty()) GTEST_SKIP() << "there is a device";
  SoftmaxState<float> state;
  float acc = 0, out = 0, lse = 0;
  const DeviceRows<float> all{.rank = 3,
                              .device = 1,
                              .rows = 1,
                              .v_dim = 1,
                              .states = &state,
                              .accs = &acc,
                              .out = &out,
                              .lse = &lse};
  try {
    rows_on_streams<float>().clear(all, nullptr);
    FAIL() << "filled without a device";
  } catch (const MachineError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 3, device 1, thrust::fill_n: expected success, found cudaError"),
              std::string::npos)
        << text;
  }
  EXPECT_THROW(rows_on_streams<float>().finish(all, nullptr), MachineError);
}

}  // namespace
}  // namespace ringlab::stages::testing
