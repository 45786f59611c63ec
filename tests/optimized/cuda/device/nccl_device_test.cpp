// NCCL itself on one GPU: messages of a rank to itself, put on a stream and captured.
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "optimized/transport/nccl/nccl_group.h"
#include "tests/optimized/cuda/device/device_test.h"

namespace ringlab::cuda {
namespace {

constexpr std::int64_t kCount = 1 << 20;

class NcclOnDevice : public DeviceTest<Needs::any_kernel> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    try {
      nccl::require_nccl();
    } catch (const Error& error) {
      GTEST_SKIP() << "no NCCL: " << error.what();
    }
  }
};

/// A communicator of one rank, and what it sends and receives.
class Alone {
 public:
  void exchange() {
    const std::array<nccl::GroupMessage, 2> parts = {
        {{nccl::Side::send, 0, bytes_of(from_), from_.bytes()},
         {nccl::Side::receive, 0, bytes_of(to_), to_.bytes()}}};
    group_.exchange(parts, stream_.get(), "to itself");
  }
  /// The numbers from `first` on are to be sent.
  void fill(int first) {
    std::vector<int> values(kCount);
    std::iota(values.begin(), values.end(), first);
    from_.write(0, values);
  }
  void wait() {
    group_.wait([this] { return has_ended(0, stream_.get()); }, "waiting");
  }
  std::vector<int> received() const {
    std::vector<int> values(kCount);
    to_.read(0, values);
    return values;
  }
  Stream stream() const { return stream_.get(); }

 private:
  static std::byte* bytes_of(const DeviceTensor<int>& tensor) {
    return reinterpret_cast<std::byte*>(tensor.data());
  }

  DeviceTensor<int> from_{0, kCount}, to_{0, kCount};
  const OwnedStream stream_ = make_stream(0);
  nccl::Group group_{{.rank = 0, .ranks = 1, .device = "0"},
                     [](const std::string& mine) { return std::vector<std::string>{mine}; }};
};

void expect_received(const Alone& alone, int first) {
  const std::vector<int> got = alone.received();
  for (std::size_t i = 0; i < got.size(); i += 4093) {
    ASSERT_EQ(got[i], first + static_cast<int>(i));
  }
  EXPECT_EQ(got.back(), first + static_cast<int>(kCount) - 1);
}

TEST_F(NcclOnDevice, what_is_sent_arrives) {
  Alone alone;
  alone.fill(5);
  alone.exchange();
  alone.wait();
  expect_received(alone, 5);
}

TEST_F(NcclOnDevice, what_was_captured_is_sent_whenever_the_graph_is_launched) {
  Alone alone;
  begin_capture(0, alone.stream());
  alone.exchange();
  const OwnedGraph graph = end_capture(0, alone.stream());
  for (const int first : {100, 70000}) {
    alone.fill(first);
    launch(graph, alone.stream());
    alone.wait();
    expect_received(alone, first);
  }
}

TEST_F(NcclOnDevice, ends_while_a_message_is_under_way) {
  Alone alone;
  alone.fill(1);
  alone.exchange();
}

}  // namespace
}  // namespace ringlab::cuda
