#include "optimized/transport/thread_network.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace ringlab::in_process {
namespace {

constexpr double kLongestTimeout = 1e9;  // thirty years; keeps the deadline representable

std::chrono::steady_clock::duration checked_timeout(double seconds) {
  if (!(seconds > 0)) {
    throw_usage_error({.where = "timeout",
                       .expected = "more than 0 seconds",
                       .actual = std::to_string(seconds),
                       .hint = ""});
  }
  const std::chrono::duration<double> bounded(std::min(seconds, kLongestTimeout));
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(bounded);
}

/// Ends a wait however it ends: a rank that is busy dying does not count as stuck.
struct EndOfWait {
  std::optional<Operation>& waiting;
  ~EndOfWait() { waiting.reset(); }
};

std::string missed_deadline(double timeout_s) {
  std::ostringstream text;
  text << "no progress within " << timeout_s << " s, the deadline: the peer is stalled or slow";
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

void ThreadNetwork::leave(int rank, const std::exception_ptr& thrown) {
  const Lock lock(mutex_);
  if (thrown) failure_.record_thrown(rank, thrown);
  table_.end_rank(rank);
  wake_everyone();
}

Request ThreadNetwork::post_send(int rank, int to, int tag, std::span<const std::byte> bytes) {
  std::vector<std::byte> payload;
  if (!rendezvous_) payload.assign(bytes.begin(), bytes.end());
  const Lock lock(mutex_);
  if (failure_) failure_.throw_to_survivor(rank, "to post a send to rank " + std::to_string(to));
  const MessageTable::Posted posted = table_.post_send({rank, to, tag}, bytes);
  if (!rendezvous_) {
    posted.message->payload = std::move(payload);
    posted.message->taken = true;
    state(to).wake.notify_one();
  }
  return posted.request;
}

Request ThreadNetwork::post_receive(int rank, int from, int tag, std::span<std::byte> buffer) {
  const Lock lock(mutex_);
  if (failure_) {
    failure_.throw_to_survivor(rank, "to post a receive from rank " + std::to_string(from));
  }
  const MessageTable::Posted posted = table_.post_receive({rank, from, tag}, buffer);
  state(from).wake.notify_one();
  return posted.request;
}

void ThreadNetwork::wait(int rank, Request request) {
  Lock lock(mutex_);
  const Operation operation = table_.find(rank, request);
  block_until_taken(rank, operation, lock);
  if (operation.direction == Direction::send) return table_.close(rank, request);
  Message& message = *operation.message;
  if (message.target.size() != message.sent_bytes) fail(rank, size_error(rank, message));
  table_.close(rank, request);
  lock.unlock();
  // Freed here: the sender may not wait for its send, which keeps the message, for long.
  const std::vector<std::byte> payload = std::move(message.payload);
  std::copy(payload.begin(), payload.end(), message.target.begin());
}

void ThreadNetwork::block_until_taken(int rank, const Operation& operation, Lock& lock) {
  const auto begin = std::chrono::steady_clock::now();
  const auto deadline = begin + timeout_;
  const auto attempt = [&] {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return Attempt{.rank = rank, .doing = describe(operation), .elapsed_s = elapsed.count()};
  };
  RankState& me = state(rank);
  for (bool expired = false;;) {
    if (failure_) failure_.throw_to_survivor(rank, describe(operation));
    // It let go of the lock meanwhile: what was matched, or failed, then has woken nobody.
    if (serve_sends(rank, lock)) continue;
    if (operation.message->taken) return;
    const std::string reason = table_.hopeless(operation, rendezvous_);
    if (!reason.empty()) fail(rank, wait_error(attempt(), peer_of(operation), reason));
    if (expired) fail(rank, wait_error(attempt(), peer_of(operation), missed_deadline(timeout_s_)));
    me.waiting = operation;
    const EndOfWait end_of_wait{me.waiting};
    if (all_are_stuck()) fail(kEveryRank, stuck_error());
    expired = me.wake.wait_until(lock, deadline) == std::cv_status::timeout;
  }
}

bool ThreadNetwork::serve_sends(int rank, Lock& lock) {
  if (!rendezvous_) return false;
  bool served = false;
  for (const Operation& operation : table_.open(rank)) {
    Message& message = *operation.message;
    if (operation.direction != Direction::send || message.taken || !message.matched()) continue;
    lock.unlock();  // nobody else touches source or payload before `taken`
    message.payload.assign(message.source.begin(), message.source.end());
    lock.lock();
    message.taken = true;
    served = true;
    state(message.to).wake.notify_one();
  }
  return served;
}

bool ThreadNetwork::can_move(int rank) const {
  if (table_.ended(rank)) return false;
  const std::optional<Operation>& waiting = states_[static_cast<std::size_t>(rank)].waiting;
  if (!waiting || waiting->message->taken) return true;
  if (!table_.hopeless(*waiting, rendezvous_).empty()) return true;  // it is about to say so
  return std::ranges::any_of(table_.open(rank), [](const Operation& operation) {
    const Message& message = *operation.message;
    return operation.direction == Direction::send && !message.taken && message.matched();
  });
}

bool ThreadNetwork::all_are_stuck() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (can_move(rank)) return false;
  }
  return true;
}

Error ThreadNetwork::stuck_error() const {
  std::vector<std::optional<Operation>> waiting;
  for (const RankState& each : states_) waiting.push_back(each.waiting);
  return deadlock_error(waiting);
}

void ThreadNetwork::fail(int rank, const Error& error) {
  failure_.record(rank, error);
  wake_everyone();
  throw_copy(error);
}

void ThreadNetwork::wake_everyone() {
  for (RankState& each : states_) each.wake.notify_one();
}

void ThreadNetwork::rethrow_failure() const {
  if (failure_) failure_.rethrow();
}

}  // namespace ringlab::in_process

namespace ringlab {

NetworkSummary run_threads(int ranks, const NetworkOptions& options, const RankBody& body) {
  in_process::check_ranks(ranks);
  in_process::ThreadNetwork network(ranks, options);
  in_process::run_ranks(network, body, [] {});
  network.rethrow_failure();
  return in_process::summarize(network);
}

}  // namespace ringlab
