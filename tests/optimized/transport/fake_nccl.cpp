// The functions of NCCL that nccl_calls.h names, as a shared library.
#include "tests/optimized/transport/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace ringlab::nccl {

/// What graphs know of a communicator, which may be gone before they are.
struct Life {
  std::atomic<bool> has_ended = false;
  std::atomic<int> graphs = 0;  // exchanges that they hold
};

}  // namespace ringlab::nccl

struct ncclComm {
  int id = 0;
  int rank = 0;
  int ranks = 1;
  int polls = 0;  // after an operation it is in progress for a while
  int left = 0;   // ends that have not met their other end
  bool finalizes = false;
  std::function<void()> put = {};  // what is on the stream when it no longer is
  std::shared_ptr<ringlab::nccl::Life> life = std::make_shared<ringlab::nccl::Life>();
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
  std::shared_ptr<std::atomic<int>> open = {};  // ends of its exchange that have not met
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
    --*end->open;
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

void post(const std::vector<End>& ends) {
  for (const End& end : ends) {
    ++left[end.stream];
    ++end.communicator->left;
    ++state.messages;
    meet(end);
  }
}

/// An exchange in a graph, for as long as that is.
class Captured {
 public:
  Captured(const std::vector<End>& ends, std::shared_ptr<Life> life)
      : ends_(ends), life_(std::move(life)) {
    ++life_->graphs;
  }
  ~Captured() { --life_->graphs; }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  void start() {
    const std::scoped_lock lock(mutex);
    if (life_->has_ended) return;
    *ends_.front().open = static_cast<int>(ends_.size());
    post(ends_);
  }
  bool is_over() const { return life_->has_ended || *ends_.front().open == 0; }

 private:
  const std::vector<End> ends_;
  const std::shared_ptr<Life> life_;
};

/// On its stream, or in the graph that this is captured for.
void put_on_stream(const std::vector<End>& ends) {
  if (state.capture) {
    const auto captured = std::make_shared<Captured>(ends, ends.front().communicator->life);
    if (state.capture(
            ends.front().stream, [captured] { captured->start(); },
            [captured] { return captured->is_over(); })) {
      state.captured += static_cast<int>(ends.size());
      return;
    }
  }
  post(ends);
}

ncclResult_t put(const End& end) {
  if (end.communicator->polls > 0) return ncclInvalidArgument;
  if (end.peer < 0 || end.peer >= end.communicator->ranks) return ncclInvalidArgument;
  group.push_back(end);
  return ncclSuccess;
}

/// Nothing of it stays on the device.
void forget(ncclComm_t communicator) {
  for (auto& [line, ends] : posted) {
    std::erase_if(ends, [&](const End& end) {
      if (end.communicator != communicator) return false;
      --left[end.stream];
      return true;
    });
  }
  communicator->life->has_ended = true;
}

void wait_for_graphs(const Life& life) {
  const auto begin = std::chrono::steady_clock::now();
  while (life.graphs > 0) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(state.patience_ms)) {
      ++state.stuck_aborts;
      return;
    }
    if (state.run_graphs) state.run_graphs();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void reset() {
  const std::scoped_lock lock(mutex);
  state.version = 22809;
  state.failing_rank = -1;
  state.inits = state.aborts = state.destroyed = state.messages = 0;
  state.captured = state.stuck_aborts = 0;
  state.patience_ms = 2000;
  state.meets_in_exchange = state.spoils = false;
  state.capture = {};
  state.run_graphs = {};
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
  state.most_blocks = config->maxCTAs;
  *communicator = new ncclComm{.rank = rank, .ranks = ranks};
  std::memcpy(&(*communicator)->id, id.internal, sizeof(int));
  ++ranks_that_came[(*communicator)->id];
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* news) {
  const std::scoped_lock lock(mutex);
  const bool all_came = ranks_that_came[communicator->id] == communicator->ranks;
  const bool waits = (state.meets_in_exchange && communicator->left > 0) ||
                     (communicator->finalizes && communicator->life->graphs > 0);
  *news = all_came && communicator->polls == 0 && !waits ? ncclSuccess : ncclInProgress;
  if (communicator->polls > 0 && --communicator->polls == 0 && communicator->put) {
    std::exchange(communicator->put, {})();
  }
  if (state.failing_rank == communicator->rank) *news = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  communicator->polls = 2;
  communicator->finalizes = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::scoped_lock lock(mutex);
  ++state.destroyed;
  forget(communicator);
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const std::scoped_lock lock(mutex);
    ++state.aborts;
    forget(communicator);
  }
  wait_for_graphs(*communicator->life);
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
  return put({communicator, true, peer, from, bytes, stream, {}});
}
ncclResult_t ncclRecv(void* memory, std::size_t bytes, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return put({communicator, false, peer, static_cast<std::byte*>(memory), bytes, stream, {}});
}
ncclResult_t ncclGroupEnd() {
  const std::scoped_lock lock(mutex);
  std::vector<End> ends = std::exchange(group, {});
  if (ends.empty()) return ncclSuccess;
  const auto open = std::make_shared<std::atomic<int>>(static_cast<int>(ends.size()));
  for (End& end : ends) end.open = open;
  const ncclComm_t communicator = ends.front().communicator;  // of all of them
  communicator->polls = 3;
  communicator->put = [ends] { put_on_stream(ends); };
  return ncclInProgress;
}

}  // extern "C"
