// Chunks and sums of gradients on their way: a header and two tensors each, checked on arrival.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "optimized/ring/host/message.h"
#include "optimized/ring/host/recorder.h"
#include "optimized/ring/host/waits.h"
#include "optimized/transport/communicator.h"
#include "reference/core/error.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::ring {

/// K and V of a chunk, or dK and dV.
struct TensorPair {
  std::span<std::byte> first, second;
};

/// Executes the posts and waits of a schedule. Errors are RankErrors that name step and operation
/// and carry the flight recording.
class Exchange {
 public:
  struct Settings {
    std::uint64_t agreement = 0;
    Integrity integrity = Integrity::headers;
    Pass pass = Pass::forward;
  };
  Exchange(const Settings& settings, Communicator& network, Recorder& recorder,
           std::vector<StepTime>& step_times, Waits& waits)
      : settings_(settings),
        network_(network),
        recorder_(recorder),
        step_times_(step_times),
        waits_(waits) {}

  void post_send(const Operation& operation, TensorPair tensors);
  void post_receive(const Operation& operation, TensorPair tensors);
  /// Stands still until the send or receive that the operation names is complete.
  void wait_send(const Operation& operation);
  void wait_receive(const Operation& operation);

 private:
  /// One message under way.
  struct Transfer {
    Operation operation;
    TensorPair tensors;
    std::vector<std::byte> header;
    std::array<Request, 3> requests;
    std::int64_t begin_ns = 0;
  };
  using Transfers = std::list<Transfer>;

  Transfer& open(Transfers& transfers, const Operation& operation, TensorPair tensors);
  static Transfers::iterator find(Transfers& transfers, const Operation& operation);
  MessageHeader header_of(const Operation& operation, TensorPair tensors, int source) const;
  int tag(const Operation& operation, int part) const;
  void check_header(const Transfer& transfer);
  void check_payload(const Transfer& transfer) const;
  void record(TraceKind kind, const Transfer& transfer, std::int64_t begin_ns);
  /// Runs `step`, and adds the operation to its error when it fails.
  template <class Step>
  void guarded(const Operation& operation, Step step);
  [[noreturn]] void fail(const Operation& operation, const std::string& reason) const;

  const Settings settings_;
  Communicator& network_;
  Recorder& recorder_;
  std::vector<StepTime>& step_times_;
  Waits& waits_;
  Transfers sends_, receives_;
};

/// "receive the chunk of rank 3 from rank 1"
std::string describe(const Operation& operation);

}  // namespace ringlab::ring
