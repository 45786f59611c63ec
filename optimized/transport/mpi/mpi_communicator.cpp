#include "optimized/transport/mpi/mpi_communicator.h"

#include <limits>
#include <thread>
#include <utility>

#include "optimized/transport/post_check.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

constexpr int kEagerPolls = 200;  // before a wait starts to sleep between polls
constexpr std::chrono::microseconds kPollPause{50};
constexpr std::chrono::milliseconds kFarewell{20};  // notes are small: they leave at once

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
                               std::to_string(options.piece_bytes) + " bytes"});
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const MpiOptions& options)
    // The order of members is that of collective calls: control, processes, data.
    : options_(checked(options)), control_(comm), processes_(comm) {
  check_mpi(MPI_Comm_dup(comm, &data_), rank(), "MPI_Comm_dup");
  // Errors come back as codes and become errors with a rank's name; MPI's default would abort.
  MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN);
  largest_tag_ = tag_limit(MPI_COMM_WORLD);
  watch_.emplace(mpi_, control_, processes_, options_);
}

MpiCommunicator::~MpiCommunicator() {
  watch_->stop();
  // After a failure nothing of MPI is called, not even to free: any call may hang.
  if (failed_) return;
  // Operations that were never waited for: receives are cancelled, sends are left to MPI.
  for (auto& [id, posted] : open_) {
    for (std::size_t i = posted.done; i < posted.pieces.size(); ++i) {
      if (posted.pieces[i] == MPI_REQUEST_NULL) continue;
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

void MpiCommunicator::check_can_post(Lock& lock, bool is_send, int peer, int tag) {
  // A bad argument is refused first, whatever the job's state.
  check_post({rank(), is_send ? "post_send" : "post_receive", peer, tag}, ranks(), largest_tag_);
  throw_if_told(lock,
                {.doing = (is_send ? "post a send to rank " : "post a receive from rank ") +
                          std::to_string(peer),
                 .peer = peer},
                Clock::now());
}

std::vector<int> MpiCommunicator::piece_lengths(std::int64_t bytes) const {
  // The last piece is always shorter than piece_bytes, be it empty: a message whose length is a
  // multiple of piece_bytes ends with a piece of no bytes.
  std::vector<int> lengths(static_cast<std::size_t>(bytes / options_.piece_bytes),
                           static_cast<int>(options_.piece_bytes));
  lengths.push_back(static_cast<int>(bytes % options_.piece_bytes));
  return lengths;
}

std::pair<const std::int64_t, MpiCommunicator::PostedMessage>& MpiCommunicator::keep(
    PostedMessage posted) {
  // The rank is part of the number, so that a request handed to another rank is recognised.
  const std::int64_t id = next_id_++ * ranks() + rank();
  return *open_.emplace(id, std::move(posted)).first;
}

Request MpiCommunicator::post_send(int to, int tag, std::span<const std::byte> bytes) {
  Lock lock(mpi_);
  check_can_post(lock, true, to, tag);
  auto& [id, posted] = keep({.is_send = true, .peer = to, .tag = tag, .bytes = std::ssize(bytes)});
  const std::byte* at = bytes.data();
  for (const int length : piece_lengths(posted.bytes)) {
    // Kept before the call: should a piece fail, the destructor knows of those before it.
    MPI_Request& piece = posted.pieces.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(at, length, MPI_BYTE, to, tag, data_, &piece), rank(), "MPI_Isend");
    at += length;
  }
  traffic_.sent_bytes += posted.bytes;
  ++traffic_.sent_messages;
  return {id};
}

Request MpiCommunicator::post_receive(int from, int tag, std::span<std::byte> buffer) {
  Lock lock(mpi_);
  check_can_post(lock, false, from, tag);
  auto& [id, posted] =
      keep({.is_send = false, .peer = from, .tag = tag, .bytes = std::ssize(buffer)});
  std::byte* at = buffer.data();
  // MPI keeps messages of one pair and tag in order, so pieces need no numbers.
  for (const int length : piece_lengths(posted.bytes)) {
    MPI_Request& piece = posted.pieces.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(at, length, MPI_BYTE, from, tag, data_, &piece), rank(), "MPI_Irecv");
    at += length;
  }
  return {id};
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
  Lock lock(mpi_);
  block(lock, {.doing = describe(posted), .peer = posted.peer},
        [&] { return is_complete(posted); });
  if (!posted.is_send) {
    check_size(lock, posted);
    traffic_.received_bytes += posted.bytes;
    ++traffic_.received_messages;
  }
  open_.erase(found);
}

// May be called again and again; it goes on with the first piece that is not complete.
bool MpiCommunicator::is_complete(PostedMessage& posted) {
  for (; posted.done < posted.pieces.size(); ++posted.done) {
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&posted.pieces[posted.done], &done, &status);
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    // The sender's piece was longer than this rank's room for it: MPI calls
    // that an error of its own.
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

void MpiCommunicator::check_size(Lock& lock, const PostedMessage& posted) {
  if (!posted.too_long && posted.received == posted.bytes) return;
  const std::string found = posted.too_long
                                ? "a message of more than " + std::to_string(posted.bytes)
                                : "a message of " + std::to_string(posted.received);
  // Told to all, not only thrown: the others' waits are over with this one's.
  control_.announce({.finder = rank(),
                     .suspect = posted.peer,
                     .why = found + " bytes: sender and receiver disagree about the size"});
  throw_if_told(lock,
                {.doing = describe(posted) + " in " + std::to_string(posted.bytes) + " bytes",
                 .peer = posted.peer},
                Clock::now());
}

// Who is to blame for a wait that lasts too long is the watch's affair.
void MpiCommunicator::block(Lock& lock, const WaitingFor& activity,
                            const std::function<bool()>& done) {
  const auto begin = Clock::now();
  throw_if_told(lock, activity, begin);  // a job that has failed is not waited in at all
  watch_->waits_for(activity.peer);
  for (int polls = 0; !done(); ++polls) {
    control_.poll();
    throw_if_told(lock, activity, begin);
    // The watch needs the lock to answer others while this rank waits.
    lock.unlock();
    // A message that comes at once costs no sleep; longer waits leave the processor to others.
    if (polls > kEagerPolls) {
      std::this_thread::sleep_for(kPollPause);
    } else {
      std::this_thread::yield();
    }
    lock.lock();
  }
  watch_->works();
}

void MpiCommunicator::throw_if_told(Lock& lock, const WaitingFor& activity,
                                    Clock::time_point begin) {
  if (!control_.failed()) return;
  const RankError error =
      watch_->error_of(*control_.failed(), activity.doing, seconds_since(begin));
  leave_mpi(lock);
  throw error;
}

void MpiCommunicator::abort(const std::string& why) noexcept {
  try {
    Lock lock(mpi_);
    if (failed_) return;
    leave_with(why, lock);
  } catch (...) {  // the others find out at their deadline
    failed_ = true;
    control_.abandon();
  }
}

bool MpiCommunicator::is_idle() {
  for (auto& [id, posted] : open_) {
    for (std::size_t i = posted.done; i < posted.pieces.size(); ++i) {
      int done = 0;
      // A request with an error counts as ended: nothing more will come of it.
      if (MPI_Test(&posted.pieces[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
        return false;
    }
  }
  return true;
}

// Operations that do not end in time cannot be taken back: then the other ranks are told now, while
// there are buffers, and this rank leaves MPI.
void MpiCommunicator::let_go(const char* why) noexcept {
  try {
    Lock lock(mpi_);
    if (failed_) return;
    // Only receives can be cancelled; sends are waited for until MPI has read their bytes.
    for (auto& [id, posted] : open_) {
      for (std::size_t i = posted.done; i < posted.pieces.size() && !posted.is_send; ++i) {
        if (posted.pieces[i] != MPI_REQUEST_NULL) MPI_Cancel(&posted.pieces[i]);
      }
    }
    const auto end = Clock::now() + kFarewell;
    while (!is_idle()) {
      if (Clock::now() >= end) return leave_with(why, lock);
      lock.unlock();
      std::this_thread::sleep_for(kPollPause);
      lock.lock();
    }
    open_.clear();
  } catch (...) {  // the others find out at their deadline
    failed_ = true;
    control_.abandon();
  }
}

void MpiCommunicator::leave_with(const std::string& why, Lock& lock) {
  control_.announce(
      {.finder = rank(), .suspect = rank(), .why = name_of(rank()) + " failed (" + why + ")"});
  leave_mpi(lock);
}

// After a failure MPI may hang in any call (the peer may be dead), so it is left without
// MPI_Finalize, once the notes of the failure had time to leave.
void MpiCommunicator::leave_mpi(Lock& lock) {
  if (failed_) return;
  // The watch is told that somebody speaks for this rank, so that it keeps its last word.
  watch_->knows(lock);
  failed_ = true;
  const auto end = Clock::now() + kFarewell;
  while (Clock::now() < end) {
    control_.poll();
    lock.unlock();
    // Unlocked during the sleep, so that the watch goes on answering.
    std::this_thread::sleep_for(kPollPause);
    lock.lock();
  }
  control_.abandon();
}

void MpiCommunicator::check_others(const std::string& operation) {
  Lock lock(mpi_);
  control_.poll();
  throw_if_told(lock, {.doing = operation, .peer = kNobody}, Clock::now());
}

void MpiCommunicator::finish() {
  Lock lock(mpi_);
  // A barrier that does not block, so that the deadline and the news of a failure reach this wait.
  MPI_Request barrier = MPI_REQUEST_NULL;
  const WaitingFor activity{.doing = "end together with all ranks", .peer = kEverybody};
  throw_if_told(lock, activity, Clock::now());
  check_mpi(MPI_Ibarrier(data_, &barrier), rank(), "MPI_Ibarrier");
  block(lock, activity, [&] {
    int done = 0;
    check_mpi(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), rank(), "MPI_Test");
    return done != 0;
  });
  // The job has ended well: later failures of other ranks do not concern this rank.
  watch_->knows(lock);
}

}  // namespace ringlab::mpi
