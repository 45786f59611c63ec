#include "optimized/transport/simulated_network.h"

#include <algorithm>
#include <new>

namespace ringlab::in_process {

namespace {

// The stack of a rank; kernels keep their tiles elsewhere.
constexpr std::size_t kStackBytes = 256 << 10;

}  // namespace

void Turns::stand_still(int rank) { fibres_[static_cast<std::size_t>(rank)].suspend(); }

void Turns::run(int ranks, const std::function<void(int)>& body) {
  Stacks stacks = make_stacks(kStackBytes);
  for (int rank = 0; rank < ranks; ++rank) {
    fibres_.emplace_back(stacks, [&body, rank] { body(rank); });
  }
  // Whoever runs says who is next before it stands still or ends, so this loop decides nothing.
  while (holder_ >= 0) fibres_[static_cast<std::size_t>(holder_)].resume();
}

SimulatedNetwork::SimulatedNetwork(int ranks, std::uint64_t seed, bool rendezvous)
    : rendezvous_(rendezvous),
      table_(ranks),
      failure_(ranks),
      random_(seed),
      waiting_(static_cast<std::size_t>(ranks)),
      running_(ranks) {
  // Room for one event per rank: release_survivors() pushes as many, and must not allocate.
  events_.reserve(static_cast<std::size_t>(ranks));
  // Ranks start at random moments, like everything else.
  for (int rank = 0; rank < ranks; ++rank) schedule_rank(rank);
}

void SimulatedNetwork::run(const RankBody& body) {
  turns_.give_to(next_rank());
  // Fibres are made before any rank runs: memory that is missing then is the machine's error.
  try {
    turns_.run(ranks(), [&](int rank) { run_rank(*this, rank, body); });
  } catch (const std::bad_alloc& error) {
    throw_cannot_start(*this, "fibres", error);
  }
}

void SimulatedNetwork::leave(int rank, const std::exception_ptr& thrown) {
  // The failure first: else others would only find that their waits are hopeless.
  if (thrown) fail_thrown(rank, thrown);
  table_.end_rank(rank);
  --running_;
  end_time_ = now_;
  // Some may wait for what this rank will never send: they are released to find that out.
  int next = -1;
  try {
    for (int other = 0; other < ranks(); ++other) release_if_complete(other);
    next = next_rank();
  } catch (...) {
    fail_thrown(rank, std::current_exception());
    next = next_rank();
  }
  turns_.give_to(next);
}

Request SimulatedNetwork::post_send(int rank, int to, int tag, std::span<const std::byte> bytes) {
  throw_if_failed(rank, "to post a send to rank " + std::to_string(to));
  const MessageTable::PostedPair posted = table_.post_send({rank, to, tag}, bytes);
  // Without rendezvous a message sets out at once; with it only when the receive is posted as well.
  if (!rendezvous_ || posted.message->matched()) schedule_arrival(posted.message);
  return posted.request;
}

Request SimulatedNetwork::post_receive(int rank, int from, int tag, std::span<std::byte> buffer) {
  throw_if_failed(rank, "to post a receive from rank " + std::to_string(from));
  const MessageTable::PostedPair posted = table_.post_receive({rank, from, tag}, buffer);
  // After the table has paired it: a message that was taken before is delivered by an event, never
  // here, so the poison is seen by whoever reads too early.
  std::ranges::fill(buffer, kPoison);
  const PairedMessage& message = *posted.message;
  if (message.taken || (rendezvous_ && message.matched())) schedule_arrival(posted.message);
  return posted.request;
}

void SimulatedNetwork::wait(int rank, Request request) {
  const HalfMessage operation = table_.find(rank, request);
  throw_if_failed(rank, describe(operation));
  // From here on arrivals may release this rank; one that is complete already is released at once,
  // by an event like all others, so that even this wait lets other ranks go first.
  waiting_[static_cast<std::size_t>(rank)] = operation;
  release_if_complete(rank);
  const int next = next_rank();
  if (next != rank) {
    turns_.give_to(next);
    turns_.stand_still(rank);
  }
  throw_if_failed(rank, describe(operation));
  // Only where nobody has failed: what a failure makes hopeless is told as that failure.
  const std::string reason = table_.hopeless(operation, rendezvous_);
  const PairedMessage& message = *operation.message;
  if (!reason.empty()) {
    fail(rank,
         wait_error({.rank = rank, .doing = describe(operation)}, peer_of(operation), reason));
  } else if (operation.direction == Direction::receive &&
             message.target.size() != message.sent_bytes) {
    fail(rank, size_error(rank, message));
  }
  if (failure_) failure_.rethrow();
  table_.close(rank, request);
}

std::int64_t SimulatedNetwork::random_delay() {
  // Mostly short, sometimes long enough for everybody else to be hops ahead.
  const std::uint64_t draw = random_();
  return static_cast<std::int64_t>(draw % 8 == 0 ? (draw >> 8) % 64 : (draw >> 8) % 8);
}

void SimulatedNetwork::push(NetworkEvent event) {
  // Events of one tick come in the order of this draw; `number` only breaks its
  // ties, for one order per seed.
  event.order = random_();
  event.number = pushed_++;
  events_.push_back(std::move(event));
  std::ranges::push_heap(events_, std::greater<>());
}

void SimulatedNetwork::schedule_rank(int rank) {
  push({.time = now_ + random_delay(), .order = 0, .number = 0, .rank = rank, .message = {}});
}

void SimulatedNetwork::schedule_arrival(const MessagePtr& message) {
  // A tick at least: no message is there at the moment in which it was posted.
  const std::int64_t time = now_ + 1 + random_delay();
  push({.time = time, .order = 0, .number = 0, .rank = -1, .message = message});
}

// A discrete-event loop: time jumps to the earliest event. No event left while ranks still run
// means that every one of them waits: a deadlock, found at once and whatever the timing of real
// threads.
int SimulatedNetwork::next_rank() {
  while (running_ > 0) {
    if (events_.empty()) {
      fail(kEveryRank, deadlock_error(waiting_, table_));
      continue;
    }
    std::ranges::pop_heap(events_, std::greater<>());
    const NetworkEvent event = std::move(events_.back());
    events_.pop_back();
    // Never back: every event is pushed for now_ or later.
    now_ = event.time;
    if (!event.message) return event.rank;
    arrive(*event.message);
  }
  return -1;
}

// Bytes are read from the sender and written to the receiver at this moment only; see the header.
void SimulatedNetwork::arrive(PairedMessage& message) {
  if (message.sender_left) return;
  if (!message.taken) {
    message.payload.assign(message.source.begin(), message.source.end());
    message.taken = true;
    message.source = {};
  }
  if (message.receive_posted) {
    // A wrong size is not written at all; wait() makes it the receiver's error.
    if (message.target.size() == message.payload.size()) {
      std::ranges::copy(message.payload, message.target.begin());
    }
    message.filled = true;
  }
  release_if_complete(message.from);
  release_if_complete(message.to);
}

bool SimulatedNetwork::complete(const HalfMessage& operation) const {
  const PairedMessage& message = *operation.message;
  return operation.direction == Direction::send ? message.taken : message.filled;
}

void SimulatedNetwork::release_if_complete(int rank) {
  std::optional<HalfMessage>& waiting = waiting_[static_cast<std::size_t>(rank)];
  if (!waiting) return;
  // Hopeless operations end their wait, too: wait() then says why.
  if (!complete(*waiting) && table_.hopeless(*waiting, rendezvous_).empty()) return;
  waiting.reset();
  schedule_rank(rank);
}

void SimulatedNetwork::fail(int rank, const Error& error) {
  if (failure_) return;
  failure_.record(rank, error);
  release_survivors(rank);
}

void SimulatedNetwork::fail_thrown(int rank, const std::exception_ptr& thrown) noexcept {
  const bool first = !failure_;
  failure_.record_thrown(rank, thrown);
  if (first) release_survivors(rank);
}

void SimulatedNetwork::release_survivors(int rank) noexcept {
  events_.clear();  // nothing arrives any more: buffers are about to die
  for (int other = 0; other < ranks(); ++other) {
    waiting_[static_cast<std::size_t>(other)].reset();
    if (other != rank && !table_.ended(other)) schedule_rank(other);
  }
}

void SimulatedNetwork::throw_if_failed(int rank, const std::string& doing) const {
  if (failure_) failure_.throw_to_survivor(rank, doing);
}

void SimulatedNetwork::rethrow_failure() const {
  if (failure_) failure_.rethrow();
}

}  // namespace ringlab::in_process

namespace ringlab {

NetworkSummary run_simulated(int ranks, std::uint64_t seed, const NetworkOptions& options,
                             const RankBody& body) {
  in_process::check_ranks(ranks);
  in_process::SimulatedNetwork network(ranks, seed, options.rendezvous);
  network.run(body);
  network.rethrow_failure();
  NetworkSummary summary = in_process::summarize(network);
  summary.virtual_time = network.virtual_time();
  return summary;
}

}  // namespace ringlab
