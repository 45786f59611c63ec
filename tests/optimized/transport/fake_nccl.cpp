// The functions of NCCL that nccl_calls.h names, as a shared library.
#include "tests/optimized/transport/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

struct ncclComm {
  int id = 0;
  int rank = 0;
  int ranks = 1;
  int polls = 0;  // after an operation it is in progress for a while
  int left = 0;   // ends that have not met their other end
};

namespace ringlab::nccl {
namespace {

struct End {
  ncclComm_t communicator = nullptr;
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  const CUstream_st* stream = nullptr;
};
/// Communicator, sender, receiver; true: sends.
using Line = std::tuple<int, int, int, bool>;

FakeNccl state;
std::mutex mutex;
std::map<int, int> ranks_that_came;  // by id
std::map<Line, std::deque<End>> posted;
std::map<const CUstream_st*, int> left;
int ids = 0;
thread_local std::vector<End> group;

void arrive(const End& send, const End& receive) {
  std::memcpy(receive.memory, send.memory, std::min(send.bytes, receive.bytes));
  if (state.spoils) *receive.memory ^= std::byte{1};
  for (const End* end : {&send, &receive}) {
    --left[end->stream];
    --end->communicator->left;
  }
}

void meet(const End& mine) {
  const int id = mine.communicator->id, rank = mine.communicator->rank;
  const int from = mine.sends ? rank : mine.peer, to = mine.sends ? mine.peer : rank;
  std::deque<End>& theirs = posted[{id, from, to, !mine.sends}];
  if (theirs.empty()) {
    posted[{id, from, to, mine.sends}].push_back(mine);
    return;
  }
  mine.sends ? arrive(mine, theirs.front()) : arrive(theirs.front(), mine);
  theirs.pop_front();
}

ncclResult_t put(const End& end) {
  if (end.peer < 0 || end.peer >= end.communicator->ranks) return ncclInvalidArgument;
  group.push_back(end);
  return ncclSuccess;
}

/// Nothing of it stays on the device.
void forget(ncclComm_t communicator) {
  for (auto& [line, ends] : posted) {
    std::erase_if(ends, [&](const End& end) { return end.communicator == communicator; });
  }
  delete communicator;
}

void reset() {
  const std::scoped_lock lock(mutex);
  state.version = 22809;
  state.failing_rank = -1;
  state.inits = state.aborts = state.destroyed = state.messages = 0;
  state.meets_in_exchange = state.spoils = false;
  posted.clear();
  left.clear();
  ranks_that_came.clear();
}

int left_on(const CUstream_st* stream) {
  const std::scoped_lock lock(mutex);
  return left[stream];
}

bool uses(const std::byte* memory, std::int64_t bytes) {
  const std::scoped_lock lock(mutex);
  for (const auto& [line, ends] : posted) {
    for (const End& end : ends) {
      if (end.memory < memory + bytes && memory < end.memory + end.bytes) return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace ringlab::nccl

using namespace ringlab::nccl;

extern "C" {

const RinglabFakeNccl* ringlab_fake_nccl() {
  static const RinglabFakeNccl fake{&state, reset, left_on, uses};
  return &fake;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = state.version;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "invalid argument";
}
const char* ncclGetLastError(ncclComm_t) { return "the last words"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::scoped_lock lock(mutex);
  *id = {};
  ++ids;
  std::memcpy(id->internal, &ids, sizeof ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  const std::scoped_lock lock(mutex);
  ++state.inits;
  *communicator = new ncclComm{.rank = rank, .ranks = ranks};
  std::memcpy(&(*communicator)->id, id.internal, sizeof(int));
  ++ranks_that_came[(*communicator)->id];
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* news) {
  const std::scoped_lock lock(mutex);
  const bool all_came = ranks_that_came[communicator->id] == communicator->ranks;
  const bool waits = state.meets_in_exchange && communicator->left > 0;
  *news = all_came && communicator->polls == 0 && !waits ? ncclSuccess : ncclInProgress;
  if (communicator->polls > 0) --communicator->polls;
  if (state.failing_rank == communicator->rank) *news = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  communicator->polls = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  ++state.destroyed;
  forget(communicator);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  ++state.aborts;
  forget(communicator);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  group.clear();
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* memory, std::size_t bytes, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(memory));
  return put({communicator, true, peer, from, bytes, stream});
}
ncclResult_t ncclRecv(void* memory, std::size_t bytes, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return put({communicator, false, peer, static_cast<std::byte*>(memory), bytes, stream});
}
ncclResult_t ncclGroupEnd() {
  const std::scoped_lock lock(mutex);
  for (const End& end : group) {
    ++left[end.stream];
    ++end.communicator->left;
    ++state.messages;
    end.communicator->polls = 3;
    meet(end);
  }
  group.clear();
  return ncclInProgress;
}

}  // extern "C"
