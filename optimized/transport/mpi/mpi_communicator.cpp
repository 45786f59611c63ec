#include "optimized/transport/mpi/mpi_communicator.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include "optimized/transport/post_check.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

constexpr double kLongestTimeout = 1e9;  // thirty years; keeps the deadline representable
constexpr int kEagerPolls = 200;         // before a wait starts to sleep between polls
constexpr std::chrono::microseconds kPollPause{50};
constexpr std::chrono::milliseconds kFarewell{20};  // notes are small: they leave at once

volatile std::sig_atomic_t launcher_asked = 0;

Clock::duration duration_of(double seconds) {
  const std::chrono::duration<double> bounded(std::min(seconds, kLongestTimeout));
  return std::chrono::duration_cast<Clock::duration>(bounded);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int tag_limit(MPI_Comm comm) {
  int* limit = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&limit), &found);
  return found ? *limit : 32767;  // what every MPI grants
}

MpiOptions checked(const MpiOptions& options) {
  const bool pieces_fit =
      options.piece_bytes >= 1 && options.piece_bytes <= std::numeric_limits<int>::max();
  if (options.timeout_s > 0 && options.grace_s > 0 && pieces_fit) return options;
  throw_usage_error({.where = "mpi",
                     .expected = "timeout and grace above 0 s, pieces of 1 … 2^31-1 bytes",
                     .actual = std::to_string(options.timeout_s) + " s, " +
                               std::to_string(options.grace_s) + " s, " +
                               std::to_string(options.piece_bytes) + " bytes",
                     .hint = ""});
}

}  // namespace

bool launcher_wants_end() { return launcher_asked != 0; }
void note_launcher_wants_end() { launcher_asked = 1; }

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const MpiOptions& options)
    : options_(checked(options)), control_(comm) {
  check_mpi(MPI_Comm_dup(comm, &data_), rank(), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN);
  largest_tag_ = tag_limit(MPI_COMM_WORLD);
}

MpiCommunicator::~MpiCommunicator() {
  if (failed_) return;
  for (auto& [id, posted] : open_) {
    for (std::size_t i = posted.done; i < posted.pieces.size(); ++i) {
      if (!posted.is_send) MPI_Cancel(&posted.pieces[i]);
      MPI_Request_free(&posted.pieces[i]);
    }
  }
  MPI_Comm_free(&data_);
}

std::string MpiCommunicator::describe(const PostedMessage& posted) {
  return (posted.is_send ? "send tag " : "receive tag ") + std::to_string(posted.tag) +
         (posted.is_send ? " to rank " : " from rank ") + std::to_string(posted.peer);
}

void MpiCommunicator::check_can_post(bool is_send, int peer, int tag) {
  check_post({rank(), is_send ? "post_send" : "post_receive", peer, tag}, ranks(), largest_tag_);
  throw_if_told({.doing = (is_send ? "post a send to rank " : "post a receive from rank ") +
                          std::to_string(peer),
                 .peer = peer},
                Clock::now());
}

std::vector<int> MpiCommunicator::piece_lengths(std::int64_t bytes) const {
  std::vector<int> lengths(static_cast<std::size_t>(bytes / options_.piece_bytes),
                           static_cast<int>(options_.piece_bytes));
  lengths.push_back(static_cast<int>(bytes % options_.piece_bytes));
  return lengths;
}

Request MpiCommunicator::keep(PostedMessage posted) {
  // The rank is part of the number, so that a request handed to another rank is recognised.
  const std::int64_t id = next_id_++ * ranks() + rank();
  open_.emplace(id, std::move(posted));
  return {id};
}

Request MpiCommunicator::post_send(int to, int tag, std::span<const std::byte> bytes) {
  check_can_post(true, to, tag);
  PostedMessage posted{.is_send = true, .peer = to, .tag = tag, .bytes = std::ssize(bytes)};
  const std::byte* at = bytes.data();
  for (const int length : piece_lengths(posted.bytes)) {
    MPI_Request& piece = posted.pieces.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(at, length, MPI_BYTE, to, tag, data_, &piece), rank(), "MPI_Isend");
    at += length;
  }
  traffic_.sent_bytes += posted.bytes;
  ++traffic_.sent_messages;
  return keep(std::move(posted));
}

Request MpiCommunicator::post_receive(int from, int tag, std::span<std::byte> buffer) {
  check_can_post(false, from, tag);
  PostedMessage posted{.is_send = false, .peer = from, .tag = tag, .bytes = std::ssize(buffer)};
  std::byte* at = buffer.data();
  for (const int length : piece_lengths(posted.bytes)) {
    MPI_Request& piece = posted.pieces.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(at, length, MPI_BYTE, from, tag, data_, &piece), rank(), "MPI_Irecv");
    at += length;
  }
  return keep(std::move(posted));
}

void MpiCommunicator::wait(Request request) {
  const auto found = open_.find(request.id);
  if (found == open_.end()) {
    throw_usage_error({.where = "rank " + std::to_string(rank()) + ", wait",
                       .expected = "a request this rank posted and has not waited for",
                       .actual = "request " + std::to_string(request.id),
                       .hint = "Wait once for every request, on the rank that posted it"});
  }
  PostedMessage& posted = found->second;
  block({.doing = describe(posted), .peer = posted.peer}, [&] { return is_complete(posted); });
  if (!posted.is_send) {
    check_size(posted);
    traffic_.received_bytes += posted.bytes;
    ++traffic_.received_messages;
  }
  open_.erase(found);
}

bool MpiCommunicator::is_complete(PostedMessage& posted) {
  for (; posted.done < posted.pieces.size(); ++posted.done) {
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&posted.pieces[posted.done], &done, &status);
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    posted.too_long = posted.too_long || error_class == MPI_ERR_TRUNCATE;
    if (posted.too_long) return true;
    check_mpi(code, rank(), "MPI_Test");
    if (!done) return false;
    int count = 0;
    if (!posted.is_send) MPI_Get_count(&status, MPI_BYTE, &count);
    posted.received += count;
    // A short piece is the last of its message, whatever this rank had room for.
    if (!posted.is_send && count < options_.piece_bytes && posted.received != posted.bytes) {
      return true;
    }
  }
  return true;
}

void MpiCommunicator::check_size(const PostedMessage& posted) {
  if (!posted.too_long && posted.received == posted.bytes) return;
  const std::string found = posted.too_long
                                ? "a message of more than " + std::to_string(posted.bytes)
                                : "a message of " + std::to_string(posted.received);
  fail({.doing = describe(posted) + " in " + std::to_string(posted.bytes) + " bytes",
        .peer = posted.peer},
       Clock::now(), {posted.peer, found + " bytes: sender and receiver disagree about the size"});
}

// A late rank looks for a suspect before it gives up: the peer may just have come. The launcher's
// SIGTERM counts as late, since the process will be killed soon, and its reason would be lost.
void MpiCommunicator::block(const WaitingFor& activity, const std::function<bool()>& done) {
  const auto begin = Clock::now();
  const auto deadline = begin + duration_of(options_.timeout_s);
  throw_if_told(activity, begin);
  control_.set_waiting_for(activity.peer);
  for (int polls = 0; !done(); ++polls) {
    control_.poll();
    throw_if_told(activity, begin);
    const bool late = Clock::now() >= deadline || launcher_wants_end();
    if (late && resolve_delay(activity, begin, done)) break;
    if (polls > kEagerPolls) {
      std::this_thread::sleep_for(kPollPause);
    } else {
      std::this_thread::yield();
    }
  }
  control_.set_waiting_for(kNobody);
}

bool MpiCommunicator::resolve_delay(const WaitingFor& activity, Clock::time_point begin,
                                    const std::function<bool()>& done) {
  const std::optional<Suspicion> verdict =
      find_suspect(control_, activity.peer, duration_of(options_.grace_s),
                   [&] { return control_.failed().has_value() || done(); });
  throw_if_told(activity, begin);
  if (verdict) fail(activity, begin, *verdict);
  return true;
}

void MpiCommunicator::throw_if_told(const WaitingFor& activity, Clock::time_point begin) {
  const std::optional<Failed>& failed = control_.failed();
  if (!failed) return;
  leave_mpi();
  std::string reason = failed->why;
  if (failed->suspect == rank() && failed->finder != rank()) {
    reason = "rank " + std::to_string(failed->finder) + " gave up on this rank (" + reason + ")";
  }
  throw RankError({.rank = rank(),
                   .suspect = failed->suspect,
                   .operation = activity.doing,
                   .reason = reason,
                   .elapsed_s = seconds_since(begin)});
}

void MpiCommunicator::fail(const WaitingFor& activity, Clock::time_point begin,
                           const Suspicion& verdict) {
  std::string why = verdict.why;
  if (launcher_wants_end()) why += " (the launcher is ending the job)";
  control_.announce({.finder = rank(), .suspect = verdict.suspect, .why = why});
  leave_mpi();
  throw RankError({.rank = rank(),
                   .suspect = verdict.suspect,
                   .operation = activity.doing,
                   .reason = why,
                   .elapsed_s = seconds_since(begin)});
}

void MpiCommunicator::abort(const std::string& why) noexcept {
  if (failed_) return;
  try {
    control_.announce({.finder = rank(),
                       .suspect = rank(),
                       .why = "rank " + std::to_string(rank()) + " failed (" + why + ")"});
    leave_mpi();
  } catch (...) {  // the others find out at their deadline
    failed_ = true;
    control_.abandon();
  }
}

// After a failure MPI may hang in any call (the peer may be dead), so it is left without
// MPI_Finalize, once the notes of the failure had time to leave.
void MpiCommunicator::leave_mpi() {
  if (failed_) return;
  failed_ = true;
  const auto end = Clock::now() + kFarewell;
  while (Clock::now() < end) {
    control_.poll();
    std::this_thread::sleep_for(kPollPause);
  }
  control_.abandon();
}

void MpiCommunicator::check_others(const std::string& operation) {
  control_.poll();
  throw_if_told({.doing = operation, .peer = kNobody}, Clock::now());
}

void MpiCommunicator::finish() {
  MPI_Request barrier = MPI_REQUEST_NULL;
  const WaitingFor activity{.doing = "end together with all ranks", .peer = kEverybody};
  throw_if_told(activity, Clock::now());
  check_mpi(MPI_Ibarrier(data_, &barrier), rank(), "MPI_Ibarrier");
  block(activity, [&] {
    int done = 0;
    check_mpi(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), rank(), "MPI_Test");
    return done != 0;
  });
}

}  // namespace ringlab::mpi
