#include "optimized/transport/thread_network.h"

#include <hwy/cache_control.h>
#include <pthread.h>

#include <algorithm>
#include <future>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace ringlab::in_process {
namespace {

constexpr double kLongestTimeout = 1e9;    // thirty years; keeps the deadline representable
constexpr bool kSendsNeedReceives = true;  // those that wait: a buffered one is complete at once
constexpr std::size_t kLongestBuffered = std::size_t{4} << 20;
constexpr std::size_t kShortestUnlocked = std::size_t{16} << 10;  // else waiting costs more
constexpr std::size_t kLongestPiece = std::size_t{256} << 10;     // stays in a core's cache

std::chrono::steady_clock::duration checked_timeout(double seconds) {
  if (!(seconds > 0)) {
    throw_usage_error(
        {.where = "timeout", .expected = "more than 0 seconds", .actual = std::to_string(seconds)});
  }
  const std::chrono::duration<double> bounded(std::min(seconds, kLongestTimeout));
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(bounded);
}

/// Notes that a rank waits, however that ends: a rank that is busy dying does not count as stuck.
class NotedWait {
 public:
  NotedWait(std::optional<HalfMessage>& waiting, int& idle, const HalfMessage& operation)
      : waiting_(waiting), idle_(idle) {
    waiting_ = operation;
    ++idle_;
  }
  ~NotedWait() {
    waiting_.reset();
    --idle_;
  }
  NotedWait(const NotedWait&) = delete;
  NotedWait& operator=(const NotedWait&) = delete;

 private:
  std::optional<HalfMessage>& waiting_;
  int& idle_;
};

/// Processor time that a thread has used; nothing where that is not known.
std::optional<Patience::Seconds> used_by(const std::optional<clockid_t>& clock) {
  timespec used{};
  if (!clock || clock_gettime(*clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool is_complete(const HalfMessage& operation) {
  const PairedMessage& message = *operation.message;
  return operation.direction == Direction::send ? message.taken : message.filled;
}

/// True when the rank whose operation it is could move a piece of the message now. One that does
/// not fit is not carried: the receiver will say so.
bool can_move_a_piece(const HalfMessage& operation) {
  const PairedMessage& message = *operation.message;
  if (!message.matched() || is_complete(operation)) return false;
  if (operation.direction == Direction::receive) return message.taken || !message.payload.empty();
  return message.payload.empty() || !message.fits();
}

std::string missed_deadline(double timeout_s) {
  std::ostringstream text;
  text << "no progress within " << timeout_s
       << " s, the deadline: the peer is stalled, or needs a longer one (--timeout)";
  return text.str();
}

}  // namespace

ThreadNetwork::ThreadNetwork(int ranks, const NetworkOptions& options)
    : timeout_(checked_timeout(options.timeout_s)),
      timeout_s_(options.timeout_s),
      rendezvous_(options.rendezvous),
      table_(ranks),
      states_(static_cast<std::size_t>(ranks)),
      failure_(ranks) {}

void ThreadNetwork::enter(int rank) {
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  const Lock lock(mutex_);
  state(rank).processor_time = clock;
}

void ThreadNetwork::leave(int rank, const std::exception_ptr& thrown) {
  const Lock lock(mutex_);
  state(rank).processor_time.reset();
  ++idle_;
  note_progress();
  if (thrown) failure_.record_thrown(rank, thrown);
  table_.end_rank(rank);
  wake_everyone();
}

// Who holds it does so for a moment: having the kernel wait costs more than asking again. With a
// thousand ranks on two cores it took five times as many switches between threads.
ThreadNetwork::Lock ThreadNetwork::locked() {
  constexpr int kTries = 200;  // some microseconds
  Lock lock(mutex_, std::try_to_lock);
  for (int i = 0; i < kTries && !lock; ++i) {
    hwy::Pause();
    if (lock.try_lock()) return lock;
  }
  if (!lock) lock.lock();
  return lock;
}

Request ThreadNetwork::post_send(int rank, int to, int tag, std::span<const std::byte> bytes) {
  const bool buffered = !rendezvous_ && bytes.size() <= kLongestBuffered;
  std::vector<std::byte> payload;
  if (buffered) payload.assign(bytes.begin(), bytes.end());
  Lock lock = locked();
  if (failure_) failure_.throw_to_survivor(rank, "to post a send to rank " + std::to_string(to));
  const MessageTable::PostedPair posted = table_.post_send({rank, to, tag}, bytes);
  note_progress();
  if (buffered) {
    posted.message->payload = std::move(payload);
    posted.message->taken = true;
  }
  note_movable(posted.message);
  const bool wanted = buffered && waits_for(to, *posted.message);
  lock.unlock();  // or who is woken would wait for it
  if (wanted) state(to).wake.notify_one();
  return posted.request;
}

Request ThreadNetwork::post_receive(int rank, int from, int tag, std::span<std::byte> buffer) {
  Lock lock = locked();
  if (failure_) {
    failure_.throw_to_survivor(rank, "to post a receive from rank " + std::to_string(from));
  }
  const MessageTable::PostedPair posted = table_.post_receive({rank, from, tag}, buffer);
  note_progress();
  note_movable(posted.message);
  const bool awaited = posted.message->matched() && !posted.message->taken;
  lock.unlock();
  if (awaited) state(from).wake.notify_one();
  return posted.request;
}

void ThreadNetwork::wait(int rank, Request request) {
  Lock lock = locked();
  const HalfMessage operation = table_.find(rank, request);
  block_until_complete(rank, operation, lock);
  const PairedMessage& message = *operation.message;
  if (operation.direction == Direction::receive && !message.fits()) {
    fail(rank, size_error(rank, message));
  }
  table_.close(rank, request);
}

// Waits in turns: say so if the run has failed, move a piece of any open message, and sleep only
// when there is none. The last rank to sleep sees that all do, so that a deadlock needs no
// deadline.
void ThreadNetwork::block_until_complete(int rank, const HalfMessage& operation, Lock& lock) {
  const auto begin = Clock::now();
  Patience patience(timeout_);
  const auto attempt = [&] {
    const Patience::Seconds elapsed = Clock::now() - begin;
    return Attempt{.rank = rank, .doing = describe(operation), .elapsed_s = elapsed.count()};
  };
  WaitState& me = state(rank);
  for (bool expired = false;;) {
    if (failure_) failure_.throw_to_survivor(rank, describe(operation));
    if (is_complete(operation)) return;
    // Moving a piece lets go of the lock: what was matched, or failed, meanwhile has woken nobody.
    if (move_pieces(rank, operation, lock)) {
      note_progress();
      expired = false;
      continue;
    }
    const std::string reason = table_.hopeless(operation, kSendsNeedReceives);
    if (!reason.empty()) fail(rank, wait_error(attempt(), peer_of(operation), reason));
    const NotedWait noted(me.waiting, idle_, operation);
    if (expired && patience.is_over(last_progress_, [&] { return look_at_awaited(rank); })) {
      fail(rank, wait_error(attempt(), awaited_by(rank), missed_deadline(timeout_s_)));
    }
    if (idle_ == ranks() && !wake_who_can_move()) fail(kEveryRank, stuck_error());
    expired =
        me.wake.wait_until(lock, patience.next_look(last_progress_)) == std::cv_status::timeout;
  }
}

// Each message has one side at a time that can move a piece of it; a peer that ends leaves it to
// the rank that waits for it.
void ThreadNetwork::note_movable(const MessagePtr& message) {
  for (const Direction direction : {Direction::send, Direction::receive}) {
    const HalfMessage operation{direction, message};
    if (!can_move_a_piece(operation)) continue;
    const int mover = direction == Direction::send ? message->from : message->to;
    state(mover).movable.push_back(operation);
  }
}

bool ThreadNetwork::move_pieces(int rank, const HalfMessage& awaited, Lock& lock) {
  std::vector<HalfMessage> operations = std::exchange(state(rank).movable, {});
  operations.push_back(awaited);
  bool moved = false;
  for (const HalfMessage& operation : operations) {
    if (!can_move_a_piece(operation)) continue;
    PairedMessage& message = *operation.message;
    operation.direction == Direction::send ? read_piece(message, lock) : write_piece(message, lock);
    note_movable(operation.message);
    moved = true;
  }
  return moved;
}

// Only the sender reads `source`, only the receiver writes `target`, and neither needs a lock for
// that: a piece belongs to whoever took it out of the message.

void ThreadNetwork::read_piece(PairedMessage& message, Lock& lock) {
  if (message.fits()) {
    const std::size_t left = message.source.size() - message.read_bytes;
    const auto bytes = message.source.subspan(message.read_bytes, std::min(left, kLongestPiece));
    lock.unlock();
    std::vector<std::byte> piece(bytes.begin(), bytes.end());
    lock.lock();
    message.read_bytes += piece.size();
    message.payload = std::move(piece);
  }
  message.taken = !message.fits() || message.read_bytes == message.sent_bytes;
  state(message.to).wake.notify_one();
}

void ThreadNetwork::write_piece(PairedMessage& message, Lock& lock) {
  const std::vector<std::byte> piece = std::exchange(message.payload, {});
  const bool last = message.taken;
  if (message.fits()) {
    if (!last) state(message.from).wake.notify_one();  // for the next piece
    const bool is_short = piece.size() <= kShortestUnlocked;
    if (!is_short) lock.unlock();
    std::ranges::copy(piece, message.target.subspan(message.written_bytes).begin());
    if (!is_short) lock.lock();
    message.written_bytes += piece.size();
  }
  message.filled = last;
}

bool ThreadNetwork::can_move(int rank) const {
  if (table_.ended(rank)) return false;
  const WaitState& that = states_[static_cast<std::size_t>(rank)];
  const std::optional<HalfMessage>& waiting = that.waiting;
  if (!waiting || is_complete(*waiting) || can_move_a_piece(*waiting)) return true;
  if (!table_.hopeless(*waiting, kSendsNeedReceives).empty()) return true;  // it is about to say so
  return std::ranges::any_of(that.movable, can_move_a_piece);
}

bool ThreadNetwork::waits_for(int rank, const PairedMessage& message) const {
  const std::optional<HalfMessage>& waiting = states_[static_cast<std::size_t>(rank)].waiting;
  return waiting && waiting->message.get() == &message;
}

// A rank that waits for one message is not woken for others: it takes them when it comes to them.
bool ThreadNetwork::wake_who_can_move() {
  bool any = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!can_move(rank)) continue;
    state(rank).wake.notify_one();
    any = true;
  }
  return any;
}

int ThreadNetwork::awaited_by(int rank) const {
  int awaited = rank;
  for (int hops = 0; hops < ranks(); ++hops) {
    const std::optional<HalfMessage>& waiting = states_[static_cast<std::size_t>(awaited)].waiting;
    if (!waiting || is_complete(*waiting)) break;
    awaited = peer_of(*waiting);
  }
  return awaited;
}

Patience::Look ThreadNetwork::look_at_awaited(int rank) const {
  const int awaited = awaited_by(rank);
  return {awaited, used_by(states_[static_cast<std::size_t>(awaited)].processor_time)};
}

Error ThreadNetwork::stuck_error() const {
  std::vector<std::optional<HalfMessage>> waiting;
  for (const WaitState& each : states_) waiting.push_back(each.waiting);
  return deadlock_error(waiting, table_);
}

void ThreadNetwork::fail(int rank, const Error& error) {
  failure_.record(rank, error);
  wake_everyone();
  throw_copy(error);
}

void ThreadNetwork::wake_everyone() {
  for (WaitState& each : states_) each.wake.notify_one();
}

void ThreadNetwork::rethrow_failure() const {
  if (failure_) failure_.rethrow();
}

namespace {

/// Runs `body` in one thread per rank and joins them all; environment error when they cannot all be
/// made.
void run_ranks(ThreadNetwork& network, const RankBody& body) {
  // Bodies start when every thread exists: with too few threads none of them may run.
  std::promise<bool> gate;
  const std::shared_future<bool> opened = gate.get_future().share();
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < network.ranks(); ++rank) {
      threads.emplace_back([&network, &body, opened, rank] {
        if (!opened.get()) return;
        network.enter(rank);
        run_rank(network, rank, body);
      });
    }
  } catch (const std::exception& error) {
    gate.set_value(false);
    for (std::thread& thread : threads) thread.join();
    throw_cannot_start(network, "threads", error);
  }
  gate.set_value(true);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ringlab::in_process

namespace ringlab {

NetworkSummary run_threads(int ranks, const NetworkOptions& options, const RankBody& body) {
  in_process::check_ranks(ranks);
  in_process::ThreadNetwork network(ranks, options);
  in_process::run_ranks(network, body);
  network.rethrow_failure();
  return in_process::summarize(network);
}

}  // namespace ringlab
