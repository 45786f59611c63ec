#include "tests/optimized/transport/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <cstddef>
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
};

namespace ringlab::nccl {
namespace {

struct End {
  ncclComm_t communicator = nullptr;
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  CUstream_st* stream = nullptr;
};
/// Communicator, sender, receiver; true: sends.
using Line = std::tuple<int, int, int, bool>;

std::mutex mutex;
std::map<int, int> ranks_that_came;  // by id
std::map<Line, std::deque<End>> posted;
int ids = 0;
thread_local std::vector<End> group;

void meet(const End& mine) {
  const int id = mine.communicator->id, rank = mine.communicator->rank;
  const int from = mine.sends ? rank : mine.peer, to = mine.sends ? mine.peer : rank;
  std::deque<End>& theirs = posted[{id, from, to, !mine.sends}];
  if (theirs.empty()) {
    posted[{id, from, to, mine.sends}].push_back(mine);
    return;
  }
  const End& send = mine.sends ? mine : theirs.front();
  const End& receive = mine.sends ? theirs.front() : mine;
  std::memcpy(receive.memory, send.memory, std::min(send.bytes, receive.bytes));
  --send.stream->left;
  --receive.stream->left;
  theirs.pop_front();
}

ncclResult_t put(const End& end) {
  if (end.peer < 0 || end.peer >= end.communicator->ranks) return ncclInvalidArgument;
  group.push_back(end);
  return ncclSuccess;
}

}  // namespace

FakeNccl& fake_nccl() {
  static FakeNccl nccl;
  return nccl;
}

void reset_fake_nccl() {
  const std::scoped_lock lock(mutex);
  FakeNccl& nccl = fake_nccl();
  nccl.version = 22809;
  nccl.failing_rank = -1;
  nccl.inits = nccl.aborts = nccl.destroyed = nccl.messages = 0;
  posted.clear();
  ranks_that_came.clear();
}

}  // namespace ringlab::nccl

using namespace ringlab::nccl;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = fake_nccl().version;
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
  ++fake_nccl().inits;
  *communicator = new ncclComm{.rank = rank, .ranks = ranks};
  std::memcpy(&(*communicator)->id, id.internal, sizeof(int));
  ++ranks_that_came[(*communicator)->id];
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* news) {
  const std::scoped_lock lock(mutex);
  const bool all_came = ranks_that_came[communicator->id] == communicator->ranks;
  *news = all_came && communicator->polls == 0 ? ncclSuccess : ncclInProgress;
  if (communicator->polls > 0) --communicator->polls;
  if (fake_nccl().failing_rank == communicator->rank) *news = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  communicator->polls = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  ++fake_nccl().destroyed;
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  ++fake_nccl().aborts;
  delete communicator;
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
    ++end.stream->left;
    ++fake_nccl().messages;
    end.communicator->polls = 3;
    meet(end);
  }
  group.clear();
  return ncclInProgress;
}

}  // extern "C"
