// The ranks of a NCCL communicator as a value: messages between devices, put on a stream.
//
// No NCCL or CUDA header is seen here, and NCCL is loaded at run time (nccl_library.h). Tests
// load a NCCL of their own; of a real one only a rank's messages to itself have been seen.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "optimized/transport/tell_all.h"

struct ncclComm;
struct CUstream_st;

namespace ringlab::nccl {

struct GroupPlace {
  int rank = 0;
  int ranks = 1;
  /// The device of this rank: the same text for the same device only, as host and bus number. It
  /// must be the current one of the thread.
  std::string device;
  std::chrono::milliseconds deadline{60000};  ///< of every operation
  int most_blocks = 0;                        ///< thread blocks for messages; 0: as NCCL likes
  /// Asked while it waits: throws when another rank is known to have failed. May be empty.
  std::function<void(const std::string& operation)> check_others = {};
};

enum class Side { send, receive };

/// One end of a message, in memory of the device.
struct GroupMessage {
  Side side = Side::send;
  int peer = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
};

/// A communicator that does not block the host: NCCL is asked for news until the deadline. After a
/// deadline or an error, which is a RankError that names the rank, the operation and NCCL's reason,
/// every other operation is one, and abort() is what is left; the end of the group does it, if
/// nobody did. When to abort is for the owner to say: NCCL waits there until no graph holds
/// messages of the communicator, and so until nothing else keeps that graph on the device.
class Group {
 public:
  /// Collective. Rank 0 makes the id; `tell_all` hands it to the others. An environment error
  /// before NCCL could hang: where NCCL is missing, or not of the same version for all ranks, and
  /// for two ranks on one device where it is older than 2.30, or a rank's environment does not say
  /// NCCL_MULTI_RANK_GPU_ENABLE=1. Ranks that share one use few thread blocks for messages.
  Group(const GroupPlace& place, const TellAll& tell_all);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// All parts as one group, on `stream`, which may be captured. Returns when NCCL has put it
  /// there; parts without bytes are left out, on both ends.
  void exchange(std::span<const GroupMessage> parts, CUstream_st* stream,
                const std::string& operation);
  /// Waits until `is_over()`, which asks the device. Sooner, with an error, when NCCL reports one.
  void wait(const std::function<bool()>& is_over, const std::string& operation);
  /// Throws when NCCL reports an error.
  void check(const std::string& operation);
  /// Takes everything of it off the device; from now on every operation is an error.
  void abort() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void connect(const std::string& introduction_of_rank_0, int most_blocks);
  /// Waits until NCCL has no operation of this communicator in progress.
  void settle(const std::string& operation, Clock::time_point begin);
  /// Waits a short while, in which others are asked and the deadline may pass.
  void pause(const std::string& operation, Clock::time_point begin);
  /// Asks NCCL about the communicator; throws unless it goes well.
  bool is_in_progress(const std::string& operation, Clock::time_point begin);
  [[noreturn]] void fail(const std::string& operation, Clock::time_point begin,
                         const std::string& reason);

  /// Throws after an error or abort().
  void check_usable(const std::string& operation);

  const GroupPlace place_;
  ncclComm* communicator_ = nullptr;
  bool has_failed_ = false;
};

/// Loads NCCL, or says why not: an environment error. Returns "2.28.9 (/usr/lib/libnccl.so.2)".
std::string require_nccl();

}  // namespace ringlab::nccl
