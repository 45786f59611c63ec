#include "optimized/ring/messages/nccl_links.h"

#include <system_error>
#include <thread>

#include "optimized/cuda/device.h"

namespace ringlab::ring {
namespace {

/// Selects the device, because NCCL connects the thread's current one.
/// Called while members are initialised: the device has to be current before NCCL connects.
const TellAll& on_device(int device, const TellAll& tell_all) {
  cuda::select_device(device);
  return tell_all;
}

}  // namespace

NcclLinks::NcclLinks(const nccl::GroupPlace& place, int device, const TellAll& tell_all_for_chunks,
                     const TellAll& tell_all_for_sums)
    : device_(device),
      chunks_(place, on_device(device, tell_all_for_chunks)),
      sums_(place, on_device(device, tell_all_for_sums)) {}

NcclLinks::~NcclLinks() {
  if (has_failed_) abort();
}

template <class Body>
void NcclLinks::guarded(Body body) {
  // After an error of one communicator the state of the other is unknown: neither is used again.
  try {
    body();
  } catch (...) {
    has_failed_ = true;
    throw;
  }
}

void NcclLinks::abort() noexcept {
  std::thread sums;
  // `chunks_` is aborted by this thread meanwhile: each of them may wait
  // for the other (decision 28).
  try {
    sums = std::thread([this] { sums_.abort(); });
  } catch (const std::system_error&) {  // without a thread one after the other may still work
  }
  chunks_.abort();
  sums.joinable() ? sums.join() : sums_.abort();
}

void NcclLinks::exchange(StreamKind kind, std::span<const DeviceMessage> messages,
                         cuda::Stream stream, const std::string& operation) {
  std::vector<nccl::GroupMessage> parts;
  for (const DeviceMessage& message : messages) {
    parts.push_back({message.side == MessageSide::send ? nccl::Side::send : nccl::Side::receive,
                     message.peer, message.memory, message.bytes});
  }
  nccl::Group& group = kind == StreamKind::sums ? sums_ : chunks_;
  guarded([&] { group.exchange(parts, stream, operation); });
}

void NcclLinks::wait(cuda::Stream stream) {
  const std::string operation = "wait for the device";
  guarded([&] {
    chunks_.wait(
        [&] {
          // One communicator waits and asks the other in passing, so an
          // error of either ends the wait.
          sums_.check(operation);
          return cuda::has_ended(device_, stream);
        },
        operation);
  });
}

}  // namespace ringlab::ring
