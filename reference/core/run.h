// Inputs, options and results of every implementation of attention, whatever executes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/core/layout.h"
#include "reference/core/problem.h"
#include "reference/core/schedule/schedule.h"
#include "reference/core/schedule/trace.h"
#include "reference/core/tensor.h"

namespace ringlab {

/// Inputs as doubles whose values are exactly representable in problem.dtype, so that one form
/// serves every dtype and the oracle sees precisely what the kernel sees. Views may be strided.
struct AttentionInput {
  Problem problem;
  TensorView<const double> q, k, v;
  /// Gradient of a loss with respect to out, in the extents of out; absent unless the gradients of
  /// q, k and v are wanted.
  std::optional<TensorView<const double>> dout = {};
};

/// (batch, q_heads, q_tokens, v_dim) and (batch, q_heads, q_tokens, 1), widened to double.
struct AttentionOutput {
  Tensor<double> out;
  Tensor<double> lse;
};

/// Gradients in the extents of q, k and v, widened to double.
struct AttentionGradients {
  Tensor<double> dq, dk, dv;
};

/// Owning inputs.
struct AttentionTensors {
  Tensor<double> q, k, v;
  AttentionInput input(const Problem& problem) const {
    return {problem, q.view(), k.view(), v.view()};
  }
};

/// threads: ranks in this process; simulated: one at a time with a virtual clock; mpi, nccl: this
/// process is one rank of several, with nccl one that computes on a device.
enum class TransportKind { threads, simulated, mpi, nccl };
enum class DeviceKind { cpu, cuda };

/// The format of K and V on their way between ranks. exact: the same bits as in memory. The others
/// round K and V where they are narrower than the problem's dtype; fp8 (e4m3) has a scale per block
/// that travels with the chunk.
enum class WireFormat { exact, f32, bf16, fp8 };
constexpr std::string_view wire_word(WireFormat wire) {
  switch (wire) {
    case WireFormat::exact:
      return "exact";
    case WireFormat::f32:
      return "f32";
    case WireFormat::bf16:
      return "bf16";
    case WireFormat::fp8:
      return "fp8";
  }
  return "";
}
inline constexpr auto kWireFormats = all_kinds<WireFormat, wire_word>();

/// headers: every message says what it is and that is checked. full: its bytes have a checksum too.
enum class Integrity { headers, full };

struct RunOptions {
  int ranks = 1;
  LayoutKind layout = LayoutKind::contiguous;
  /// Override the partition of queries or keys (uneven lengths, empty shards, relabelled ranks).
  std::optional<Layout> q_layout = {}, kv_layout = {};
  RingDirection direction = RingDirection::next;
  ScheduleKind schedule = ScheduleKind::ring;
  int node_ranks = 1;  ///< of ScheduleKind::double_ring: rank r is on node r / node_ranks
  int slots = 2;       ///< K/V chunks that a rank can hold besides its own
  WireFormat wire = WireFormat::exact;
  Integrity integrity = Integrity::headers;
  bool trace = false;  ///< keep all events of the run in RankStats::events
  TransportKind transport = TransportKind::threads;
  std::uint64_t delay_seed = 0;  ///< of the simulated transport's scheduler and delays
  bool rendezvous = false;       ///< zero-buffer sends
  double timeout_s = 60.0;
  int threads = 1;  ///< of each rank, where a subject can use several
  DeviceKind device = DeviceKind::cpu;
  bool as_graph = false;                ///< on devices: captured as a graph, which is launched
  bool deterministic = true;            ///< on devices: gradients of the same bits from run to run
  int free_multiprocessors = 0;         ///< on devices: kernels that stay leave so many to others
  std::int64_t tile_queries = 32;       ///< rows of a query tile, 1 … 1024
  std::int64_t tile_keys = 32;          ///< keys of a K/V tile, 1 … 1024
  std::uint64_t thread_order_seed = 0;  ///< CPU tile programs: order of the threads of a phase
};

/// One block of work a rank did: its queries against the K/V chunk that `owner` held at the start.
struct Visit {
  int owner = 0;
  int hop = 0;
  std::int64_t pairs = 0;  ///< (query, key) pairs per batch and query head that were computed
};

/// Times that a rank stood still for while it received from another one. Transfers hidden behind
/// computing are in none of them, so the link's speed is received_bytes / transfer_s at most.
struct LinkStats {
  int from = 0;
  std::int64_t received_bytes = 0;  ///< of tensors; headers are not counted
  double late_s = 0;                ///< until the header was there: the sender was late
  double transfer_s = 0;            ///< from the header until the tensors were there
};

/// Measured, not modelled. `peak_bytes` counts every buffer a rank allocates besides its inputs
/// and outputs, but not what a block kernel works on while it runs; `peak_kv_bytes` the K/V chunks
/// held at one time, its own included.
struct RankStats {
  std::int64_t sent_bytes = 0;
  std::int64_t sent_messages = 0;
  std::int64_t received_bytes = 0;
  std::int64_t received_messages = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_kv_bytes = 0;
  std::int64_t exchanges = 0;      ///< of stages: how often it stood for messages it had posted
  std::int64_t node_messages = 0;  ///< of stages: those of sent_messages that left its node
  std::vector<Visit> visits = {};
  /// Mean seconds per computed step of every rank, standing still for messages excluded, as far as
  /// this rank has heard; NaN: nothing heard. Its own entry is the mean of all its steps.
  std::vector<double> heard_step_s = {};
  double busy_s = 0;                    ///< of all steps of this rank together
  std::vector<LinkStats> links = {};    ///< one for every rank that it received from, ascending
  std::vector<TraceEvent> events = {};  ///< in program order; empty unless RunOptions::trace
};

/// Closed forms of what one rank sends and holds. Measured figures (RankStats) equal them exactly.
struct StatedCosts {
  std::int64_t sent_bytes = 0;
  std::int64_t sent_messages = 0;
  std::int64_t peak_kv_bytes = 0;
  std::optional<std::int64_t> exchanges = {};      ///< where a stage is about them
  std::optional<std::int64_t> node_messages = {};  ///< the same
};

struct RunResult {
  AttentionOutput output;
  std::optional<AttentionGradients> gradients = {};  ///< when AttentionInput::dout was given
  std::vector<RankStats> ranks;
  std::int64_t leftover_messages = 0;
  double seconds = 0;  ///< wall time of the slowest rank, sharding and gathering excluded
};

/// The schedule that the options ask for.
ScheduleSpec schedule_spec(const RunOptions& options);

// [answer: make_layout]
/// The partition of queries (or keys) that `options` asks for. Input error when an override does
/// not hold `tokens` over options.ranks ranks.
Layout make_layout(const RunOptions& options, std::int64_t tokens,
                   const std::optional<Layout>& override_layout);
// end [answer: make_layout]

}  // namespace ringlab
