#include "optimized/transport/call_record.h"

namespace ringlab {
namespace {

thread_local RecordedRun* innermost = nullptr;

}  // namespace

RecordedRun::RecordedRun() : outer_(innermost) { innermost = this; }
RecordedRun::~RecordedRun() { innermost = outer_; }

std::vector<RankCalls>* RecordedRun::begin(int ranks) {
  if (!innermost) return nullptr;
  innermost->ranks_.assign(static_cast<std::size_t>(ranks), {});
  return &innermost->ranks_;
}

std::int64_t RecordingCommunicator::ns_at(Clock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - zero_).count();
}

Request RecordingCommunicator::post_send(int to, int tag, std::span<const std::byte> bytes) {
  note_computed();
  const std::int64_t begin = now();
  const Request request = network_.post_send(to, tag, bytes);
  calls_.calls.push_back({.kind = CallKind::send,
                          .peer = to,
                          .tag = tag,
                          .begin = bytes.data(),
                          .bytes = bytes.size(),
                          .request = request.id,
                          .backward = backward_,
                          .begin_ns = begin,
                          .end_ns = now()});
  return request;
}

Request RecordingCommunicator::post_receive(int from, int tag, std::span<std::byte> buffer) {
  note_computed();
  const std::int64_t begin = now();
  const Request request = network_.post_receive(from, tag, buffer);
  calls_.calls.push_back({.kind = CallKind::receive,
                          .peer = from,
                          .tag = tag,
                          .begin = buffer.data(),
                          .bytes = buffer.size(),
                          .request = request.id,
                          .backward = backward_,
                          .begin_ns = begin,
                          .end_ns = now()});
  return request;
}

void RecordingCommunicator::wait(Request request) {
  note_computed();
  const std::size_t at = calls_.calls.size();
  calls_.calls.push_back(
      {.kind = CallKind::wait, .request = request.id, .backward = backward_, .begin_ns = now()});
  network_.wait(request);
  calls_.calls[at].returned = true;
  calls_.calls[at].end_ns = now();
}

}  // namespace ringlab
