#include "optimized/transport/nccl_group.h"

#include <nccl.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::nccl {
namespace {

constexpr std::chrono::microseconds kPause{50};
constexpr int kSharesDevices = NCCL_VERSION(2, 30, 0);

std::string reason_of(ncclResult_t status, ncclComm_t communicator) {
  std::string reason = ncclGetErrorString(status);
  const char* const last = ncclGetLastError(communicator);
  if (last && *last) reason += std::string(" (") + last + ")";
  return reason;
}

/// Environment error that names the rank, the call and NCCL's reason unless it went well, or goes
/// on.
void check_nccl(ncclResult_t status, const char* call, int rank, ncclComm_t communicator) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw_environment_error({.where = "rank " + std::to_string(rank) + ", " + call,
                           .expected = "success",
                           .actual = reason_of(status, communicator),
                           .hint = "NCCL_DEBUG=INFO says more"});
}

int loaded_version(int rank) {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion", rank, nullptr);
  return version;
}

std::string text_of(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// What a rank says to the others: an id, rank 0's being the one that counts, and its device.
std::string introduction(const GroupPlace& place) {
  ncclUniqueId id{};
  if (place.rank == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", place.rank, nullptr);
  return std::string(id.internal, sizeof id.internal) + place.device;
}

void check_introductions(const GroupPlace& place, const std::vector<std::string>& texts) {
  bool fits = texts.size() == static_cast<std::size_t>(place.ranks);
  for (const std::string& text : texts) fits = fits && text.size() >= sizeof(ncclUniqueId);
  if (fits) return;
  throw_environment_error(
      {.where = "rank " + std::to_string(place.rank),
       .expected = "the introductions of " + std::to_string(place.ranks) + " ranks",
       .actual = std::to_string(texts.size()) + ", or some that are cut off"});
}

/// NCCL before 2.30 cannot, and does not say whose device it is.
void check_devices(const GroupPlace& place, const std::vector<std::string>& texts) {
  const int version = loaded_version(place.rank);
  if (version >= kSharesDevices) return;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      const std::string device = texts[rank].substr(sizeof(ncclUniqueId));
      if (texts[other].substr(sizeof(ncclUniqueId)) != device) continue;
      throw_environment_error(
          {.where = "rank " + std::to_string(rank),
           .expected = "a device for every rank, or NCCL 2.30",
           .actual = "device " + device + ", which is rank " + std::to_string(other) +
                     "'s, and NCCL " + text_of(version),
           .hint = "Use as many ranks as devices; ranks of one process can share a device"});
    }
  }
}

}  // namespace

Group::Group(const GroupPlace& place, const TellAll& tell_all) : place_(place) {
  const std::vector<std::string> texts = tell_all(introduction(place));
  check_introductions(place, texts);
  check_devices(place, texts);
  connect(texts.front());
}

void Group::connect(const std::string& introduction_of_rank_0) {
  const auto begin = Clock::now();
  ncclUniqueId id;
  std::memcpy(id.internal, introduction_of_rank_0.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t status =
      ncclCommInitRankConfig(&communicator_, place_.ranks, id, place_.rank, &config);
  const std::string operation = "connect " + std::to_string(place_.ranks) + " ranks";
  if (status != ncclSuccess && status != ncclInProgress) {
    fail(operation, begin, reason_of(status, nullptr));
  }
  settle(operation, begin);
}

Group::~Group() {
  if (!communicator_) return;
  const auto begin = Clock::now();
  ncclResult_t status = ncclCommFinalize(communicator_);
  while (status == ncclInProgress && Clock::now() - begin < place_.deadline) {
    std::this_thread::sleep_for(kPause);
    if (ncclCommGetAsyncError(communicator_, &status) != ncclSuccess) break;
  }
  if (status == ncclSuccess) {
    ncclCommDestroy(communicator_);
  } else {
    ncclCommAbort(communicator_);
  }
}

void Group::exchange(std::span<const Part> parts, CUstream_st* stream,
                     const std::string& operation) {
  const auto begin = Clock::now();
  if (!communicator_) fail(operation, begin, "the communicator was aborted before");
  ncclResult_t status = ncclGroupStart();
  for (const Part& part : parts) {
    if (part.bytes == 0 || (status != ncclSuccess && status != ncclInProgress)) continue;
    const auto bytes = static_cast<std::size_t>(part.bytes);
    status = part.side == Side::send
                 ? ncclSend(part.memory, bytes, ncclInt8, part.peer, communicator_, stream)
                 : ncclRecv(part.memory, bytes, ncclInt8, part.peer, communicator_, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();  // also after an error, or no group could follow
  for (const ncclResult_t result : {status, ended}) {
    if (result == ncclSuccess || result == ncclInProgress) continue;
    fail(operation, begin, reason_of(result, communicator_));
  }
  settle(operation, begin);
}

void Group::wait(const std::function<bool()>& is_over, const std::string& operation) {
  const auto begin = Clock::now();
  if (!communicator_) fail(operation, begin, "the communicator was aborted before");
  while (!is_over()) {
    is_in_progress(operation, begin);
    check_deadline(operation, begin);
    std::this_thread::sleep_for(kPause);
  }
}

void Group::check(const std::string& operation) {
  const auto begin = Clock::now();
  if (!communicator_) fail(operation, begin, "the communicator was aborted before");
  is_in_progress(operation, begin);
}

void Group::abort() noexcept {
  if (communicator_) ncclCommAbort(std::exchange(communicator_, nullptr));
}

void Group::settle(const std::string& operation, Clock::time_point begin) {
  while (is_in_progress(operation, begin)) {
    check_deadline(operation, begin);
    std::this_thread::sleep_for(kPause);
  }
}

bool Group::is_in_progress(const std::string& operation, Clock::time_point begin) {
  ncclResult_t news = ncclSuccess;
  const ncclResult_t status = ncclCommGetAsyncError(communicator_, &news);
  for (const ncclResult_t result : {status, news}) {
    if (result == ncclSuccess || result == ncclInProgress) continue;
    fail(operation, begin, reason_of(result, communicator_));
  }
  return news == ncclInProgress;
}

void Group::check_deadline(const std::string& operation, Clock::time_point begin) {
  if (Clock::now() - begin < place_.deadline) return;
  fail(operation, begin, "no end within " + std::to_string(place_.deadline.count()) + " ms");
}

void Group::fail(const std::string& operation, Clock::time_point begin, const std::string& reason) {
  abort();
  const std::chrono::duration<double> elapsed = Clock::now() - begin;
  throw RankError({.rank = place_.rank,
                   .operation = operation,
                   .reason = reason,
                   .elapsed_s = elapsed.count()});
}

std::string version_text() { return text_of(loaded_version(0)); }

}  // namespace ringlab::nccl
