#include <array>
#include <memory>
#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/device.h"
#include "optimized/transport/nccl/nccl_group.h"

namespace ringlab::bench {
namespace {

/// A communicator of one rank, which is its own neighbour.
class NcclCopies final : public HopCopies {
 public:
  NcclCopies(int device, std::int64_t bytes, int most_blocks)
      : from_(device, bytes),
        to_(device, bytes),
        group_(
            {.rank = 0, .ranks = 1, .device = std::to_string(device), .most_blocks = most_blocks},
            [](const std::string& mine) { return std::vector<std::string>{mine}; }) {}

  void issue(int copies, cuda::Stream stream) override {
    const std::array<nccl::GroupMessage, 2> parts = {
        {{nccl::Side::send, 0, from_.data(), from_.bytes()},
         {nccl::Side::receive, 0, to_.data(), to_.bytes()}}};
    for (int copy = 0; copy < copies; ++copy) group_.exchange(parts, stream, "copy to itself");
  }

 private:
  cuda::DeviceTensor<std::byte> from_, to_;
  nccl::Group group_;
};

}  // namespace

std::unique_ptr<HopCopies> make_nccl_copies(int device, std::int64_t bytes, int most_blocks) {
  nccl::require_nccl();
  cuda::select_device(device);
  return std::make_unique<NcclCopies>(device, bytes, most_blocks);
}

}  // namespace ringlab::bench
