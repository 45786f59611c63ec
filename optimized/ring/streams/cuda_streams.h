// Rings on devices: stream programs on real streams, events and copies between devices.
//
// One host thread issues everything and waits once, at the end, or captures it as a graph and
// launches the graph. Ranks are spread over all devices; with one device, all are on it,
// and their streams share it. No CUDA header is seen here.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/row_calls.h"
#include "optimized/cuda/stream.h"
#include "optimized/ring/place.h"
#include "optimized/ring/streams/stream_setting.h"

namespace ringlab::ring {

/// The target of a backward kernel: it adds gradients to sums in f32, or writes the results.
enum class GradientsAs { sums, results };

/// Needs of kernels besides the tensors of their calls. The functions are called before anything is
/// allocated, with calls without device pointers, on the current device. Empty: nothing is needed.
template <class Element>
struct KernelNeeds {
  /// True when `forward` does not use ForwardCall::running in this call.
  std::function<bool(const cuda::ForwardCall<Element>&)> leaves_state;
  /// Bytes of scratch memory that calls use on their stream, one call after the other.
  std::function<std::int64_t(const cuda::ForwardCall<Element>&)> forward_bytes;
  std::function<std::int64_t(const cuda::BackwardCall<Element>&, GradientsAs)> backward_bytes;
  /// Allocates so many bytes for the stream, so that no call has to.
  std::function<void(std::int64_t bytes, cuda::Stream)> reserve;
};

/// The kernels of a run, which only put work on the stream; the current device is the stream's.
template <class Element>
struct DeviceKernels {
  /// Empty when the kernels take the shape, else why not.
  std::function<std::string(const cuda::BlockShape&)> why_not;
  std::int32_t forward_tile_queries = 64;   ///< of ForwardCall::mask.tiles
  std::int32_t backward_tile_queries = 64;  ///< of BackwardCall::mask.tiles
  std::function<void(const cuda::ForwardCall<Element>&, cuda::Stream)> forward;
  std::function<void(const cuda::BackwardCall<Element>&, cuda::Stream)> backward;
  std::function<void(const cuda::ClearStates&, cuda::Stream)> clear_states;
  std::function<void(const cuda::FinishRows<Element>&, cuda::Stream)> finish_rows;
  /// Empty where `backward` takes BackwardCall::out instead of delta.
  std::function<void(const cuda::DeltaRows<Element>&, cuda::Stream)> delta_rows;
  std::function<void(const cuda::ScaleTo<Element>&, cuda::Stream)> scale_to;
  bool sums_are_scaled = false;  ///< `backward` adds to dq and dk with the factor `scale`
  /// True when `backward` writes BackwardCall::results of this call where they are not null, and
  /// leaves the sums alone. Empty: it never does.
  std::function<bool(const cuda::BackwardCall<Element>&)> gives_results = {};
  KernelNeeds<Element> needs = {};
};

enum class IssueAs { streams, graph };
/// when_issued: the devices stand still until the host has issued all, so that their clock measures
/// their own work and not the host's; by the host's clock the run is as much longer.
enum class RunBegins { at_once, when_issued };
enum class Repeatable { no, same_bits };
inline Repeatable repeatable_gradients(const RunOptions& options) {
  return options.deterministic ? Repeatable::same_bits : Repeatable::no;
}

/// The contents of slots, sums, states and results before anything is written to them.
enum class UnwrittenMemory { whatever_is_there, nan };

struct DeviceRun {
  int devices = 0;  ///< 0: all that there are
  CopyBy copy_by = CopyBy::receiver;
  IssueAs issue_as = IssueAs::streams;
  int launches = 1;  ///< of the graph, one after the other over the same buffers; the last is timed
  RunBegins begins = RunBegins::at_once;
  Repeatable gradients = Repeatable::no;  ///< same_bits: the same from run to run, more slowly
  StreamEdit edit = {};                   ///< with_delays() and the like
  /// nan: before each pass, so that reading too early shows in results.
  UnwrittenMemory unwritten = UnwrittenMemory::whatever_is_there;
  /// Deadline of all work on the devices together, of each launch. Work that has not ended by then
  /// is DeviceStuck, which says where each stream stands; then nothing of the run is freed.
  double timeout_s = std::numeric_limits<double>::infinity();
};

/// Ranks that are streams of this process, with kernels of the caller's choice: exact wire, no
/// modifiers, no bit matrices, rows in increasing order. Runs of several threads come one after the
/// other. Source and sink are called by this thread, rank after rank, and must not run another one;
/// between them all rows are on the devices. RankStats count sent, received and held bytes, visits
/// and the events of a trace; a message is a copy, without a header. Environment errors name
/// device, rank and operation; when memory is short, how much the whole run needs and how much is
/// free, before any is allocated. Half and BFloat16.
template <class Element>
class OnStreams final : public Place {
 public:
  explicit OnStreams(DeviceKernels<Element> kernels, DeviceRun run = {})
      : kernels_(std::move(kernels)), run_(std::move(run)) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  const DeviceKernels<Element> kernels_;
  const DeviceRun run_;
};

}  // namespace ringlab::ring
