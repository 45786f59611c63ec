#include "optimized/ring/host/exchange.h"

#include <algorithm>

#include "optimized/ring/agreement.h"

namespace ringlab::ring {
namespace {

std::int64_t byte_count(std::span<const std::byte> bytes) {
  return static_cast<std::int64_t>(bytes.size());
}

}  // namespace

std::string describe(const Operation& operation) {
  const std::string what =
      (concerns_gradients(operation) ? "the gradients of rank " : "the chunk of rank ") +
      std::to_string(operation.owner);
  const std::string peer = std::to_string(operation.peer);
  return is_send(operation) ? "send " + what + " to rank " + peer
                            : "receive " + what + " from rank " + peer;
}

void Exchange::post_send(const Operation& operation, TensorPair tensors) {
  guarded(operation, [&] {
    Transfer& transfer = open(sends_, operation, tensors);
    // The header goes before the tensors: the receiver checks it before it waits for their bytes,
    // and its arrival lets Waits tell a late sender from a slow link.
    MessageHeader header = header_of(operation, tensors, network_.rank());
    // The sender's own step, for people who look at the bytes; header_fault() does not compare it.
    header.step = operation.step;
    if (header.checked == 1) {
      header.first_sum = checksum(tensors.first);
      header.second_sum = checksum(tensors.second);
    }
    // Current step times: the mean of this rank, and those of other ranks that it has heard so far.
    write_header(header, step_times_, transfer.header);
    transfer.requests = {network_.post_send(operation.peer, tag(operation, 0), transfer.header),
                         network_.post_send(operation.peer, tag(operation, 1), tensors.first),
                         network_.post_send(operation.peer, tag(operation, 2), tensors.second)};
  });
}

void Exchange::post_receive(const Operation& operation, TensorPair tensors) {
  guarded(operation, [&] {
    Transfer& transfer = open(receives_, operation, tensors);
    // Posts are matched by tag, so their order does not matter; all three return at once.
    transfer.requests = {network_.post_receive(operation.peer, tag(operation, 0), transfer.header),
                         network_.post_receive(operation.peer, tag(operation, 1), tensors.first),
                         network_.post_receive(operation.peer, tag(operation, 2), tensors.second)};
  });
}

void Exchange::wait_send(const Operation& operation) {
  guarded(operation, [&] {
    const auto transfer = find(sends_, operation);
    // Fails, as below, only for schedules that check_schedule() would refuse.
    if (transfer == sends_.end()) fail(operation, "a schedule that waits for a send not posted");
    const std::int64_t begin = recorder_.now();
    for (const Request request : transfer->requests) network_.wait(request);
    waits_.add_send(recorder_.now() - begin);
    // Two events from one wait: the message since its post, and how long
    // the rank stood still for it.
    record(TraceKind::send, *transfer, transfer->begin_ns);
    record(TraceKind::wait, *transfer, begin);
    sends_.erase(transfer);
  });
}

void Exchange::wait_receive(const Operation& operation) {
  guarded(operation, [&] {
    const auto transfer = find(receives_, operation);
    if (transfer == receives_.end())
      fail(operation, "a schedule that waits for what was not posted");
    const std::int64_t begin = recorder_.now();
    network_.wait(transfer->requests[0]);
    const std::int64_t header_there = recorder_.now();
    // Checked before the tensors: reports a wrong message as such, even where lengths do not fit.
    check_header(*transfer);
    network_.wait(transfer->requests[1]);  // K, or dK
    network_.wait(transfer->requests[2]);  // V, or dV
    waits_.add_receive(
        {.from = operation.peer,
         .bytes = byte_count(transfer->tensors.first) + byte_count(transfer->tensors.second),
         .until_header_ns = header_there - begin,
         .until_end_ns = recorder_.now() - header_there});
    // Checked after the clock was read: a checksum does not count as time of the link.
    check_payload(*transfer);
    record(TraceKind::receive, *transfer, transfer->begin_ns);
    record(TraceKind::wait, *transfer, begin);
    receives_.erase(transfer);
  });
}

Exchange::Transfer& Exchange::open(Transfers& transfers, const Operation& operation,
                                   TensorPair tensors) {
  // A list: requests point into `header`, which must not move when other transfers come and go.
  return transfers.emplace_back(Transfer{
      .operation = operation,
      .tensors = tensors,
      .header = std::vector<std::byte>(static_cast<std::size_t>(header_bytes(network_.ranks()))),
      .requests = {},
      .begin_ns = recorder_.now()});
}

// The one transfer under way of this chunk with this peer. Steps differ: a wait may stand in a
// later step than its post.
Exchange::Transfers::iterator Exchange::find(Transfers& transfers, const Operation& operation) {
  return std::ranges::find_if(transfers, [&](const Transfer& transfer) {
    const Operation& posted = transfer.operation;
    return posted.owner == operation.owner && posted.peer == operation.peer &&
           posted.payload == operation.payload;
  });
}

MessageHeader Exchange::header_of(const Operation& operation, TensorPair tensors,
                                  int source) const {
  MessageHeader header;
  header.agreement = settings_.agreement;
  header.epoch = static_cast<std::uint32_t>(settings_.pass);
  header.payload = operation.payload;
  header.source = source;
  header.owner = operation.owner;
  header.checked = settings_.integrity == Integrity::full ? 1 : 0;
  header.first_bytes = byte_count(tensors.first);
  header.second_bytes = byte_count(tensors.second);
  return header;
}

/// Every message of a run has a tag of its own, so no two can be taken for each other.
int Exchange::tag(const Operation& operation, int part) const {
  const int kind = 2 * static_cast<int>(settings_.pass) + static_cast<int>(operation.payload);
  // Owners are spread 4 kinds · 3 parts apart, behind the tags of the agreement: the largest is 15
  // + 12 P, and MPI promises tags up to 32767, which serves 2729 ranks.
  return kAgreementTags + (operation.owner * 4 + kind) * 3 + part;
}

void Exchange::check_header(const Transfer& transfer) {
  const Operation& operation = transfer.operation;
  const ReadHeader read = read_header(transfer.header, network_.ranks());
  if (!read.fault.empty()) fail(operation, read.fault);
  // Expects the header that this rank would send in the sender's place, but for checksums and step.
  const std::string fault =
      header_fault(read.header, header_of(operation, transfer.tensors, operation.peer));
  if (!fault.empty()) fail(operation, fault);
  merge_step_times(step_times_, read.times);
}

void Exchange::check_payload(const Transfer& transfer) const {
  // Both sides have the same integrity mode: check_header() has compared it.
  if (settings_.integrity != Integrity::full) return;
  // Reads the header again, because the bytes that arrived count.
  const ReadHeader read = read_header(transfer.header, network_.ranks());
  if (read.header.first_sum == checksum(transfer.tensors.first) &&
      read.header.second_sum == checksum(transfer.tensors.second)) {
    return;
  }
  fail(transfer.operation, "damaged data (the checksum does not match)");
}

void Exchange::record(TraceKind kind, const Transfer& transfer, std::int64_t begin_ns) {
  const Operation& operation = transfer.operation;
  recorder_.add({.kind = kind,
                 .rank = network_.rank(),
                 .step = operation.step,
                 .owner = operation.owner,
                 .peer = operation.peer,
                 .slot = slot_of(operation),
                 .gradient = concerns_gradients(operation),
                 .pass = settings_.pass,
                 // A wait moves nothing; the other events count the header, as closed forms do.
                 .bytes = kind == TraceKind::wait ? 0
                                                  : byte_count(transfer.tensors.first) +
                                                        byte_count(transfer.tensors.second) +
                                                        byte_count(transfer.header),
                 .begin_ns = begin_ns,
                 .end_ns = recorder_.now()});
}

template <class Step>
void Exchange::guarded(const Operation& operation, Step step) {
  try {
    step();
  } catch (const RankError& error) {
    RankFailure failure = error.failure();
    if (failure.step >= 0) throw;  // names step and operation already
    failure.step = operation.step;
    failure.operation = describe(operation);
    failure.recording = recorder_.recording();
    throw RankError(std::move(failure));
  }
}

void Exchange::fail(const Operation& operation, const std::string& reason) const {
  throw RankError({.rank = network_.rank(),
                   .suspect = operation.peer,
                   .step = operation.step,
                   .operation = describe(operation),
                   .reason = reason,
                   .recording = recorder_.recording()});
}

}  // namespace ringlab::ring
