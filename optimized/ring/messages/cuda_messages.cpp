#include "optimized/ring/messages/cuda_messages.h"

#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "optimized/cuda/stuck_device.h"
#include "optimized/ring/checks.h"
#include "optimized/ring/streams/device_checks.h"
#include "optimized/ring/streams/device_launch.h"
#include "optimized/ring/streams/device_needs.h"
#include "optimized/ring/streams/device_rank.h"
#include "optimized/ring/streams/device_work.h"
#include "optimized/ring/streams/issued_streams.h"
#include "reference/core/checks.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

[[noreturn]] void throw_stuck(const MessageRun& run, const std::string& first_error) {
  std::ostringstream found;
  found << "none within " << run.grace_s << " s; the error was: " << first_error;
  throw DeviceStuck(
      {.where = "rank " + std::to_string(run.rank) + ", device " + std::to_string(run.device),
       .expected = "an end of what runs there, after an error",
       .actual = found.str()});
}

template <class Element>
class RankRun {
 public:
  RankRun(const StreamSetting& setting, const DeviceKernels<Element>& kernels, DeviceLinks& links,
          const MessageRun& run)
      : setting_(setting),
        kernels_(kernels),
        links_(links),
        run_(run),
        streams_({run.device}, run.rank) {}

  RunSummary run(const Ends<Element>& ends) {
    take_in(ends);
    const double seconds = execute();
    streams_.finish();  // results are read below
    RankResult<Element> result = rank_->result();
    result.seconds = seconds;
    count_visits();
    stats_.peak_bytes = rank_->held_bytes();
    stats_.peak_kv_bytes = rank_->kv_bytes();
    result.stats = stats_;
    ends.sink(setting_.tokens(run_.rank), std::move(result));
    return {.ranks = {stats_}, .seconds = seconds};
  }

 private:
  /// A rank's program of a pass, with events.
  struct Issued {
    MessageProgram program;
    std::vector<cuda::OwnedEvent> events;
  };

  // Checks come before memory is allocated, and memory before anything is issued: an error up to
  // there leaves the other ranks waiting, but nothing on the device.
  void take_in(const Ends<Element>& ends) {
    const RankRows<Element> rows = ends.source(setting_.tokens(run_.rank));
    forward_ = make_issued(Pass::forward, programs_.forward);
    if (rows.dout) backward_ = make_issued(Pass::backward, programs_.backward.emplace());
    streams_.select(run_.rank);
    const RankNeedsOf<Element> needs(setting_, programs_, kernels_, run_.gradients, run_.rank);
    const typename DeviceRank<Element>::Given given{.setting = setting_,
                                                    .programs = programs_,
                                                    .kernels = kernels_,
                                                    .needs = needs.needs(),
                                                    .rank = run_.rank,
                                                    .device = run_.device};
    check_device_memory(
        {.device = run_.device, .ranks = 1, .bytes = device_rank_bytes<Element>(given)});
    rank_.emplace(given, rows);
    streams_.select(run_.rank);
    rank_->reserve(compute_stream());
    work_.emplace(*rank_, programs_, kernels_, run_.gradients);
  }

  /// Also makes the stream program of all ranks, from which the sizes of slots follow.
  Issued make_issued(Pass pass, StreamProgram& streams) const {
    const Schedule schedule = build_schedule(schedule_spec(setting_.options), setting_.need, pass);
    streams = make_stream_program(schedule, CopyBy::receiver);
    std::vector<MessageProgram> programs = make_message_programs(schedule);
    Issued issued{std::move(programs[static_cast<std::size_t>(run_.rank)]), {}};
    for (int event = 0; event < issued.program.events; ++event) {
      issued.events.push_back(cuda::make_event(run_.device));
    }
    return issued;
  }

  double execute() {
    try {
      // Current devices belong to threads, and callers may have selected another one since.
      streams_.select(run_.rank);
      const RunSeconds seconds = seconds_of_last(
          run_.issue_as, run_.launches, streams_, [&] { issue_all(); },
          // Waits by the links, which ask NCCL for errors of peers while the device works.
          [&] { links_.wait(compute_stream()); });
      return seconds.host;
    } catch (const std::exception& error) {
      streams_.drop_graph();  // or the abort would wait for the graph
      links_.abort();
      // Without others' messages the work on the device soon ends, or never does.
      if (!streams_.end_within(run_.grace_s)) throw_stuck(run_, error.what());
      throw;
    }
  }

  cuda::Stream compute_stream() const { return streams_.of(run_.rank, StreamKind::compute); }

  // Issues in the order of ranks of one process (cuda_streams.cpp): forward on all streams, its end
  // on the compute stream, everything joined, then backward.
  void issue_all() {
    streams_.fork();
    issue(forward_);
    work_->end_forward(compute_stream());
    if (programs_.backward) {
      streams_.join();
      streams_.fork();
      work_->begin_backward(compute_stream());
      issue(backward_);
      work_->end_backward(compute_stream());
    }
    streams_.join();
  }

  void issue(const Issued& issued) {
    for (const MessageOperation& operation : issued.program.operations) {
      const cuda::Stream stream = streams_.of(run_.rank, operation.stream);
      // DeviceWork takes stream operations, whatever carries the chunks.
      const StreamOperation same = as_stream_operation(operation);
      streams_.select(run_.rank);
      switch (operation.action) {
        case MessageAction::attend:
          work_->attend(issued.program.pass, same, stream);
          break;
        case MessageAction::add_gradient:
          work_->add(same, stream);
          break;
        case MessageAction::exchange:
          exchange(operation, stream);
          break;
        case MessageAction::record:
          streams_.record(same, event_of(issued, operation));
          break;
        case MessageAction::wait:
          streams_.wait(same, event_of(issued, operation));
          break;
      }
    }
  }

  static cuda::Event event_of(const Issued& issued, const MessageOperation& operation) {
    return issued.events[static_cast<std::size_t>(operation.event)].get();
  }
  StreamOperation as_stream_operation(const MessageOperation& operation) const {
    return {.rank = run_.rank,
            .stream = operation.stream,
            .step = operation.step,
            .owner = operation.owner,
            .slot = operation.slot,
            .gradient = operation.gradient,
            .addend = operation.addend,
            .event = operation.event};
  }

  void exchange(const MessageOperation& operation, cuda::Stream stream) {
    // Puts all ends of a round in one group: the order of the ends is the
    // same on both sides of each pair.
    std::vector<DeviceMessage> messages;
    for (const MessageEnd& end : operation.ends) {
      const DeviceMessage message = payload_of(operation) == Payload::chunk
                                        ? message_of(end, rank_->chunk(end.owner, end.slot))
                                        : message_of(end, rank_->sum(end.owner, end.slot));
      const bool sends = end.side == MessageSide::send;
      // Counts bytes when they are issued: further launches of a graph do
      // not count, as in OnStreams.
      (sends ? stats_.sent_bytes : stats_.received_bytes) += message.bytes;
      ++(sends ? stats_.sent_messages : stats_.received_messages);
      messages.push_back(message);
    }
    links_.exchange(operation.stream, messages, stream, place(run_.rank, operation));
  }

  /// Counts the pairs that each step sees, as OnStreams does.
  void count_visits() {
    for (const MessageOperation& o : forward_.program.operations) {
      if (o.action != MessageAction::attend) continue;
      stats_.visits.push_back({o.owner, o.step, setting_.need.pairs(run_.rank, o.owner)});
    }
  }

  template <class Pair>
  static DeviceMessage message_of(const MessageEnd& end, const Pair& pair) {
    return {end.side, end.peer, reinterpret_cast<std::byte*>(pair.first), pair.bytes()};
  }

  const StreamSetting& setting_;
  const DeviceKernels<Element>& kernels_;
  DeviceLinks& links_;
  const MessageRun& run_;
  IssuedStreams streams_;
  StreamPrograms programs_;
  Issued forward_, backward_;
  std::optional<DeviceRank<Element>> rank_;
  std::optional<DeviceWork<Element>> work_;
  RankStats stats_;
};

}  // namespace

template <class Element>
void OverLinks<Element>::check(const Problem& problem, const RunOptions& options) const {
  check_dtype(dtype_of<Element>, problem.dtype);
  check_device_abilities(problem, options);
}

template <class Element>
RunSummary OverLinks<Element>::run(const AnyRun& any) const {
  const auto& [problem, options, ends, parts] = std::get<CheckedRun<Element>>(any);
  const StreamSetting setting = stream_setting(problem, options);
  // The host has checked the problem; the remaining checks depend on kernels and device.
  check_kernels(problem, kernels_);
  check_launches(run_.issue_as, run_.launches);
  check_range("rank", run_.rank, 0, options.ranks - 1);
  check_range("device", run_.device, 0, cuda::device_count() - 1);
  // Shared, so that a stuck run can outlive this call: memory that it uses must not be freed.
  auto rank_run = std::make_shared<RankRun<Element>>(setting, kernels_, links_, run_);
  try {
    return rank_run->run(ends);
  } catch (const DeviceStuck&) {
    cuda::keep_for_ever(std::move(rank_run));
    throw;
  }
}
template class OverLinks<Half>;
template class OverLinks<BFloat16>;

}  // namespace ringlab::ring
