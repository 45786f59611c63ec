#include "optimized/ring/streams/cuda_streams.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "optimized/cuda/stream_kernels.h"
#include "optimized/cuda/stuck_device.h"
#include "optimized/ring/checks.h"
#include "optimized/ring/streams/device_checks.h"
#include "optimized/ring/streams/device_launch.h"
#include "optimized/ring/streams/device_needs.h"
#include "optimized/ring/streams/device_rank.h"
#include "optimized/ring/streams/device_trace.h"
#include "optimized/ring/streams/device_work.h"
#include "optimized/ring/streams/issued_streams.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

/// The device of each rank: neighbours share one where there are fewer devices than ranks.
std::vector<int> devices_of_ranks(int ranks, int devices) {
  std::vector<int> of;
  for (int rank = 0; rank < ranks; ++rank) of.push_back(rank * std::min(devices, ranks) / ranks);
  return of;
}

/// The mutex of the run that has the devices. Freeing memory waits for all work of its device, so
/// runs side by side would wait for each other's kernels whenever they free memory.
std::mutex& devices_turn() {
  static std::mutex turn;
  return turn;
}

template <class Element>
class DevicesRun {
 public:
  DevicesRun(const StreamSetting& setting, const DeviceKernels<Element>& kernels,
             const DeviceRun& run, int devices)
      : setting_(setting),
        kernels_(kernels),
        run_(run),
        devices_(devices_of_ranks(setting.options.ranks, devices)),
        streams_(devices_) {}

  RunSummary run(const Ends<Element>& ends) {
    take_in(ends);
    if (setting_.options.trace) trace_.emplace(streams_, devices_);
    const RunSeconds seconds = seconds_of_last(
        run_.issue_as, run_.launches, streams_, [&] { issue_all(); },
        [&] { streams_.finish(run_.timeout_s); }, hold_ns());
    return hand_over(ends, seconds);
  }

 private:
  using Rank = DeviceRank<Element>;
  using Work = DeviceWork<Element>;

  /// Takes the rows of all ranks before it allocates memory: gradients may be wanted, or not.
  void take_in(const Ends<Element>& ends) {
    std::vector<RankRows<Element>> rows;
    for (int rank = 0; rank < setting_.options.ranks; ++rank) {
      rows.push_back(ends.source(setting_.tokens(rank)));
    }
    programs_.forward = program_of(Pass::forward);
    forward_events_ = streams_.make_events(programs_.forward);
    if (rows.front().dout) {
      programs_.backward = program_of(Pass::backward);
      backward_events_ = streams_.make_events(*programs_.backward);
    }
    for (int rank = 0; rank < setting_.options.ranks; ++rank) needs_.push_back(needs_of(rank));
    check_memory();
    for (int rank = 0; rank < setting_.options.ranks; ++rank) {
      ranks_.push_back(
          std::make_unique<Rank>(given_to(rank), rows[static_cast<std::size_t>(rank)]));
    }
    for (const auto& rank : ranks_) works_.emplace_back(*rank, programs_, kernels_, run_.gradients);
    for (const auto& rank : ranks_) {
      streams_.select(rank->rank());
      rank->reserve(streams_.of(rank->rank(), StreamKind::compute));
    }
  }
  RankNeeds needs_of(int rank) const {
    streams_.select(rank);
    return RankNeedsOf<Element>(setting_, programs_, kernels_, run_.gradients, rank).needs();
  }
  typename Rank::Given given_to(int rank) const {
    return {.setting = setting_,
            .programs = programs_,
            .kernels = kernels_,
            .needs = needs_[static_cast<std::size_t>(rank)],
            .rank = rank,
            .device = devices_[static_cast<std::size_t>(rank)]};
  }
  /// Checks the memory of every device; ranks that share a device are neighbours.
  void check_memory() const {
    std::vector<DeviceNeed> needs;
    for (int rank = 0; rank < setting_.options.ranks; ++rank) {
      const int device = devices_[static_cast<std::size_t>(rank)];
      if (needs.empty() || needs.back().device != device) needs.push_back({.device = device});
      ++needs.back().ranks;
      needs.back().bytes += device_rank_bytes<Element>(given_to(rank));
    }
    for (const DeviceNeed& need : needs) check_device_memory(need);
  }
  StreamProgram program_of(Pass pass) const {
    return stream_program_of(setting_, pass, run_.copy_by, run_.edit);
  }

  /// Nanoseconds of hold, longer than the host takes to issue all.
  std::int64_t hold_ns() const {
    constexpr std::int64_t kNsPerCall = 20'000, kOthersPerRank = 16;
    if (run_.begins == RunBegins::at_once) return 0;
    std::int64_t calls = std::ssize(programs_.forward.operations);
    if (programs_.backward) calls += std::ssize(programs_.backward->operations);
    return kNsPerCall * (calls + kOthersPerRank * std::ssize(ranks_));
  }

  void issue_all() {
    streams_.fork();
    poison(Pass::forward);
    if (trace_) trace_->start();
    issue(programs_.forward, forward_events_);
    for_each_rank([](const Work& work, cuda::Stream stream) { work.end_forward(stream); });
    if (programs_.backward) {
      streams_.join();
      streams_.fork();
      poison(Pass::backward);
      for_each_rank([](const Work& work, cuda::Stream stream) { work.begin_backward(stream); });
      issue(*programs_.backward, backward_events_);
      for_each_rank([](const Work& work, cuda::Stream stream) { work.end_backward(stream); });
    }
    streams_.join();
  }

  /// Fills memory that `pass` will write with NaN; all streams come after it.
  void poison(Pass pass) {
    if (run_.unwritten == UnwrittenMemory::whatever_is_there) return;
    for_each_rank([&](const Work& work, cuda::Stream stream) { work.poison(pass, stream); });
    streams_.join();
    streams_.fork();
  }

  template <class Body>
  void for_each_rank(Body body) {
    for (const auto& rank : ranks_) {
      streams_.select(rank->rank());
      body(work_of(rank->rank()), streams_.of(rank->rank(), StreamKind::compute));
    }
  }

  void issue(const StreamProgram& program, const std::vector<cuda::Event>& events) {
    for (const StreamOperation& operation : program.operations) {
      const cuda::Stream stream = streams_.of(operation.rank, operation.stream);
      streams_.select(operation.rank);
      if (touches_slots(operation)) {
        if (!trace_) {
          work_on_slots(program.pass, operation, stream);
          continue;
        }
        trace_->around(operation, program.pass, bytes_of(operation),
                       [&] { work_on_slots(program.pass, operation, stream); });
        continue;
      }
      switch (operation.action) {
        case StreamAction::record:
          streams_.record(operation, events[static_cast<std::size_t>(operation.event)]);
          break;
        case StreamAction::wait:
          streams_.wait(operation, events[static_cast<std::size_t>(operation.event)]);
          break;
        case StreamAction::delay:
          cuda::spin(operation.delay_ns, stream);
          break;
        default:
          break;
      }
    }
  }
  void work_on_slots(Pass pass, const StreamOperation& operation, cuda::Stream stream) {
    if (operation.action == StreamAction::attend) {
      work_of(operation.rank).attend(pass, operation, stream);
    } else if (operation.action == StreamAction::copy) {
      copy(operation, stream);
    } else {
      work_of(operation.rank).add(operation, stream);
    }
  }

  template <class T>
  static std::byte* as_bytes(T* data) {
    return reinterpret_cast<std::byte*>(data);
  }

  void copy(const StreamOperation& operation, cuda::Stream stream) {
    const auto put = [&](const auto& from, const auto& to) {
      if (to.bytes() == 0) return;
      cuda::copy_between({of(operation.to.rank).device(), as_bytes(to.first)},
                         {of(operation.from.rank).device(), as_bytes(from.first)}, to.bytes(),
                         stream);
    };
    const Rank& from = of(operation.from.rank);
    const Rank& to = of(operation.to.rank);
    const int owner = operation.owner;
    if (operation.payload == Payload::chunk) {
      put(from.chunk(owner, operation.from.slot), to.chunk(owner, operation.to.slot));
    } else {
      put(from.sum(owner, operation.from.slot), to.sum(owner, operation.to.slot));
    }
  }

  const Rank& of(int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Work& work_of(int rank) const { return works_[static_cast<std::size_t>(rank)]; }

  /// Bytes that a copy moves; 0 for other operations.
  std::int64_t bytes_of(const StreamOperation& operation) const {
    if (operation.action != StreamAction::copy) return 0;
    const Rank& to = of(operation.to.rank);
    return operation.payload == Payload::chunk
               ? to.chunk(operation.owner, operation.to.slot).bytes()
               : to.sum(operation.owner, operation.to.slot).bytes();
  }

  void count_copies(const StreamProgram& program, std::vector<RankStats>& stats) const {
    for (const StreamOperation& operation : program.operations) {
      if (operation.action != StreamAction::copy) continue;
      const std::int64_t bytes = bytes_of(operation);
      RankStats& sender = stats[static_cast<std::size_t>(operation.from.rank)];
      RankStats& receiver = stats[static_cast<std::size_t>(operation.to.rank)];
      sender.sent_bytes += bytes;
      ++sender.sent_messages;
      receiver.received_bytes += bytes;
      ++receiver.received_messages;
    }
  }

  /// Counts the pairs that are seen; kernels skip tiles that no query sees.
  void count_visits(std::vector<RankStats>& stats) const {
    for (const StreamOperation& operation : programs_.forward.operations) {
      if (operation.action != StreamAction::attend) continue;
      stats[static_cast<std::size_t>(operation.rank)].visits.push_back(
          {operation.owner, operation.step, setting_.need.pairs(operation.rank, operation.owner)});
    }
  }

  RunSummary hand_over(const Ends<Element>& ends, const RunSeconds& seconds) {
    RunSummary summary{.ranks = std::vector<RankStats>(ranks_.size()),
                       .seconds = seconds.host,
                       .device_seconds = seconds.device};
    count_visits(summary.ranks);
    count_copies(programs_.forward, summary.ranks);
    if (programs_.backward) count_copies(*programs_.backward, summary.ranks);
    if (trace_) {
      std::vector<std::vector<TraceEvent>> events = trace_->events();
      for (std::size_t i = 0; i < events.size(); ++i)
        summary.ranks[i].events = std::move(events[i]);
    }
    for (const auto& rank : ranks_) {
      RankStats& stats = summary.ranks[static_cast<std::size_t>(rank->rank())];
      stats.peak_bytes = rank->held_bytes();
      stats.peak_kv_bytes = rank->kv_bytes();
      RankResult<Element> result = rank->result();
      result.stats = stats;
      result.seconds = seconds.host;
      ends.sink(setting_.tokens(rank->rank()), std::move(result));
    }
    return summary;
  }

  const StreamSetting& setting_;
  const DeviceKernels<Element>& kernels_;
  const DeviceRun& run_;
  const std::vector<int> devices_;  // of ranks
  IssuedStreams streams_;
  StreamPrograms programs_;
  std::vector<cuda::Event> forward_events_, backward_events_;
  std::vector<RankNeeds> needs_;  // by rank
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Work> works_;  // by rank
  std::optional<DeviceTrace> trace_;
};

}  // namespace

template <class Element>
void OnStreams<Element>::check(const Problem& problem, const RunOptions& options) const {
  check_dtype(dtype_of<Element>, problem.dtype);
  check_device_abilities(problem, options);
}

template <class Element>
RunSummary OnStreams<Element>::run(const AnyRun& any) const {
  const auto& [problem, options, ends, parts] = std::get<CheckedRun<Element>>(any);
  const StreamSetting setting = stream_setting(problem, options);
  check_kernels(problem, kernels_);
  check_launches(run_.issue_as, run_.launches);
  check_trace_wish(options, run_.issue_as);
  const std::scoped_lock turn(devices_turn());
  const int there = cuda::device_count();
  if (run_.devices != 0) check_range("devices", run_.devices, 1, there);
  const int devices = run_.devices == 0 ? there : run_.devices;
  cuda::connect_devices(devices);
  auto devices_run = std::make_shared<DevicesRun<Element>>(setting, kernels_, run_, devices);
  try {
    return devices_run->run(ends);
  } catch (const DeviceStuck&) {
    cuda::keep_for_ever(std::move(devices_run));
    throw;
  }
}
template class OnStreams<Half>;
template class OnStreams<BFloat16>;

}  // namespace ringlab::ring
