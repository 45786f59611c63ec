// A record of each rank's calls of its network, and its computing in between, in program order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab {

enum class CallKind { send, receive, wait, compute };

struct NetworkCall {
  CallKind kind = CallKind::wait;
  int peer = -1;  ///< send and receive: the other rank
  int tag = 0;
  const std::byte* begin = nullptr;  ///< of the buffer: where it lies, not what is in it
  std::size_t bytes = 0;
  std::int64_t request = -1;  ///< what a post returned, and what a wait is for
  bool returned = false;      ///< wait: it came to its end
  int owner = -1;             ///< compute: of the chunk
  int hop = -1;
  bool backward = false;      ///< on the way back, for gradients
  std::int64_t begin_ns = 0;  ///< since the run began; a post ends when the call does
  std::int64_t end_ns = 0;
};

struct RankCalls {
  std::vector<NetworkCall> calls;
  bool ended = false;  ///< its body returned
};

/// Records the runs of stages that begin on its thread while it lives: keeps the calls of the last
/// run, by rank, also where that run fails.
class RecordedRun {
 public:
  RecordedRun();
  ~RecordedRun();
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  const std::vector<RankCalls>& ranks() const { return ranks_; }

  /// Clears the calls of this thread's RecordedRun, and returns them with room for so many ranks;
  /// null where there is no RecordedRun.
  static std::vector<RankCalls>* begin(int ranks);

 private:
  std::vector<RankCalls> ranks_;
  RecordedRun* outer_;
};

/// Passes everything on to `network` and notes it in `calls`; both must outlive it.
class RecordingCommunicator : public Communicator {
 public:
  using Clock = std::chrono::steady_clock;
  RecordingCommunicator(Communicator& network, RankCalls& calls, Clock::time_point zero)
      : network_(network), calls_(calls), zero_(zero) {}

  int rank() const override { return network_.rank(); }
  int ranks() const override { return network_.ranks(); }
  const Traffic& traffic() const override { return network_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override;
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override;
  void wait(Request request) override;

 protected:
  /// Notes the computing since the last call; called before a call is noted.
  virtual void note_computed() {}
  RankCalls& calls() { return calls_; }
  std::int64_t ns_at(Clock::time_point time) const;
  std::int64_t now() const { return ns_at(Clock::now()); }
  bool backward_ = false;  ///< NetworkCall::backward of calls noted from now on

 private:
  Communicator& network_;
  RankCalls& calls_;
  Clock::time_point zero_;
};

}  // namespace ringlab
