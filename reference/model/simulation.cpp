#include "reference/model/simulation.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/schedule/operation_words.h"
#include "reference/model/network.h"

namespace ringlab::model {
namespace {

std::size_t at(int number) { return static_cast<std::size_t>(number); }

constexpr double kNever = NetworkModel::kNever;
constexpr double kRounding = 1e-12;  // of times

std::int64_t in_ns(double seconds) { return std::llround(seconds * 1e9); }

/// A message, from its posts on.
struct SimulatedMessage {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  std::optional<double> sent = {}, received = {};         ///< when the ends posted it
  std::optional<double> left = {}, arrived = {};          ///< known once all has left
  bool sender_stopped = false, receiver_stopped = false;  ///< stand still for it
};

/// The place of a rank in its program.
struct ProgramPlace {
  std::size_t operation = 0;
  std::optional<double> stopped;  ///< since when it stands still
  const Operation* working = nullptr;
  double begun = 0;  ///< of what it works on
  double left = 0;   ///< of it at `since`, in seconds without transfers
  double since = 0;
  int transfers = 0;       ///< messages that it sends or receives
  std::int64_t event = 0;  ///< its next one; those before are void
};

/// An event: a rank goes on.
struct RankEvent {
  double time = 0;
  std::int64_t number = 0;  ///< in the order in which they were made
  int rank = 0;
  bool operator>(const RankEvent& other) const {
    return std::tie(time, number) > std::tie(other.time, other.number);
  }
};

class ScheduleRun {
 public:
  ScheduleRun(const Load& load, const Machine& machine, const Disturbance& disturbance)
      : load_(load),
        machine_(machine),
        disturbance_(disturbance),
        network_(machine),
        places_(load.schedule.ranks.size()),
        blocks_done_(places_.size()) {
    simulated_.ranks.resize(places_.size());
    simulated_.events.resize(places_.size());
  }

  Simulation run() {
    // Ranks begin all at once: the time of a run is that of the last rank.
    for (int rank = 0; rank < ranks(); ++rank) go_on(rank, 0);
    for (double now = 0; now != kNever; now = next_moment()) {
      // One moment may wake others in the same moment, so it is gone over
      // until nothing is left of it.
      do {
        while (!events_.empty() && events_.top().time <= now) {
          const RankEvent event = events_.top();
          events_.pop();
          if (event.number == places_[at(event.rank)].event) advance(event.rank, now);
        }
        // Speeds change when a message begins or ends, and only then.
        if (network_.has_changed()) network_.share(now);
        for (const int message : network_.take_ended(now)) arrive(messages_[at(message)], now);
      } while (next_moment() <= now);
    }
    check_all_ended();
    for (const RankTimes& rank : simulated_.ranks) {
      simulated_.seconds = std::max(simulated_.seconds, rank.end_s);
    }
    return std::move(simulated_);
  }

 private:
  int ranks() const { return static_cast<int>(places_.size()); }
  const std::vector<Operation>& program(int rank) const {
    return load_.schedule.ranks[at(rank)].operations;
  }
  void go_on(int rank, double time) {
    places_[at(rank)].event = ++made_;
    events_.push({time, made_, rank});
  }
  double next_moment() {
    const double ready = events_.empty() ? kNever : events_.top().time;
    return std::min(ready, network_.next_end());
  }

  /// Executes as much as the rank can without time passing.
  void advance(int rank, double now) {
    ProgramPlace& place = places_[at(rank)];
    if (place.working != nullptr) end_work(rank, now);
    while (place.operation < program(rank).size()) {
      const Operation& operation = program(rank)[place.operation];
      const Verb verb = operation.verb;
      if (verb == Verb::compute || verb == Verb::add) {
        ++place.operation;
        return begin_work(rank, operation, now);
      }
      if (verb == Verb::post_send || verb == Verb::post_receive) {
        post(rank, operation, now);
      } else if (!wait(rank, operation, now)) {
        return;
      }
      ++place.operation;
    }
    simulated_.ranks[at(rank)].end_s = now;
  }

  void begin_work(int rank, const Operation& operation, double now) {
    const bool adds = operation.verb == Verb::add;
    ProgramPlace& place = places_[at(rank)];
    place.working = &operation;
    place.begun = place.since = now;
    place.left = adds ? add_seconds(operation) : block_seconds(rank, operation);
    if (!adds) ++blocks_done_[at(rank)];
    foresee_end(rank);
  }
  void foresee_end(int rank) {
    const ProgramPlace& place = places_[at(rank)];
    go_on(rank, place.since + (place.left > 0 ? place.left / speed_of_work(place) : 0));
  }
  /// The share of its speed that a rank has: 0 where transfers take all of it.
  double speed_of_work(const ProgramPlace& place) const {
    return place.transfers > 0 ? 1 - machine_.transfer_share : 1;
  }
  void end_work(int rank, double now) {
    ProgramPlace& place = places_[at(rank)];
    const Operation& operation = *std::exchange(place.working, nullptr);
    const bool adds = operation.verb == Verb::add;
    RankTimes& times = simulated_.ranks[at(rank)];
    (adds ? times.add_s : times.compute_s) += now - place.begun;
    record(adds ? TraceKind::add : TraceKind::compute, rank, operation, place.begun, now);
  }
  /// Counts a transfer of a rank more or less, which moves the end of the operation it works on.
  void count_transfer(int rank, int more, double now) {
    if (machine_.transfer_share == 0) return;
    ProgramPlace& place = places_[at(rank)];
    const double before = speed_of_work(place);
    place.transfers += more;
    if (place.working == nullptr || speed_of_work(place) == before) return;
    place.left -= before * (now - place.since);
    if (place.left <= kRounding * now) place.left = 0;  // it ends in this moment
    place.since = now;
    foresee_end(rank);
  }
  double block_seconds(int rank, const Operation& operation) const {
    const auto pairs = static_cast<double>(load_.need.pairs(rank, operation.owner));
    // Pairs that are seen, times what one costs; what tiles compute for nothing is not modelled.
    const double computing =
        pairs * static_cast<double>(load_.work.flops_per_pair) / flops(rank, operation.owner);
    const double slower = disturbance_.slower.empty() ? 1 : disturbance_.slower[at(rank)];
    return (machine_.block_s + computing + merge_seconds(rank)) * slower *
           (1 + disturbance_.jitter * exponential(rank, operation.owner));
  }
  double flops(int rank, int owner) const {
    const bool cut = load_.cut == CutBlocks::all || (load_.cut == CutBlocks::own && rank == owner);
    const std::int64_t tokens = std::min(load_.tokens[at(rank)], load_.tokens[at(owner)]);
    return machine_.flops(load_.schedule.pass, static_cast<double>(tokens), cut);
  }
  /// The time of merging a block's answer, or its dQ, with those before it.
  double merge_seconds(int rank) const {
    if (blocks_done_[at(rank)] == 0) return 0;
    const double numbers = static_cast<double>(load_.work.out_numbers_per_token) *
                           static_cast<double>(load_.tokens[at(rank)]);
    return machine_.merge_bytes * numbers / machine_.memory_bytes_per_s;
  }
  /// The time of adding sums of gradients: reads two numbers, writes one.
  double add_seconds(const Operation& operation) const {
    return 3.0 * static_cast<double>(bytes_of(operation)) / machine_.memory_bytes_per_s;
  }
  /// A random factor: the same for the same block, whatever the schedule.
  double exponential(int rank, int owner) const {
    using Philox = r123::Philox4x32;
    const Philox::ctr_type block{{static_cast<std::uint32_t>(rank),
                                  static_cast<std::uint32_t>(owner),
                                  static_cast<std::uint32_t>(load_.schedule.pass), 0}};
    const Philox::key_type key{{static_cast<std::uint32_t>(disturbance_.seed),
                                static_cast<std::uint32_t>(disturbance_.seed >> 32)}};
    const Philox::ctr_type random = Philox()(block, key);
    // Exponentially distributed, mean 1.
    return -std::log1p(-static_cast<double>(random[0]) * 0x1p-32);
  }
  std::int64_t bytes_of(const Operation& operation) const {
    const Work& work = load_.work;
    return load_.tokens[at(operation.owner)] *
           (concerns_gradients(operation) ? work.sum_bytes_per_token : work.kv_bytes_per_token);
  }

  int number_of(int rank, const Operation& operation) {
    const MessageKey key = message_of(rank, operation);
    const auto [entry, is_new] = numbers_.try_emplace(key, static_cast<int>(messages_.size()));
    if (is_new) {
      messages_.push_back({.from = key.from, .to = key.to, .bytes = bytes_of(operation)});
    }
    return entry->second;
  }

  void post(int rank, const Operation& operation, double now) {
    const int number = number_of(rank, operation);
    SimulatedMessage& message = messages_[at(number)];
    (operation.verb == Verb::post_send ? message.sent : message.received) = now;
    // Starts the message once both ends have posted, as with NCCL.
    if (!message.sent || !message.received) return;
    network_.start(number, message.from, message.to, message.bytes, now);
    for (const int end : {message.from, message.to}) count_transfer(end, 1, now);
    simulated_.ranks[at(message.to)].incoming_s +=
        static_cast<double>(message.bytes) / speed_of(message).bytes_per_s;
  }
  const LinkSpeed& speed_of(const SimulatedMessage& message) const {
    return machine_.between(message.from, message.to);
  }

  void arrive(SimulatedMessage& message, double now) {
    message.left = now;
    for (const int end : {message.from, message.to}) count_transfer(end, -1, now);
    // The sender is free when all has left, the receiver has it a latency later.
    message.arrived = now + speed_of(message).latency_s;
    if (message.sender_stopped) go_on(message.from, *message.left);
    if (message.receiver_stopped) go_on(message.to, *message.arrived);
  }

  /// True when the wait is over; else the rank goes on when it is.
  bool wait(int rank, const Operation& operation, double now) {
    const bool sends = is_send(operation);
    SimulatedMessage& message = messages_[at(number_of(rank, operation))];
    // Unknown until the message has left; then arrive() wakes who stands still for it.
    const std::optional<double>& end = sends ? message.left : message.arrived;
    ProgramPlace& place = places_[at(rank)];
    if (end && *end <= now) {
      if (place.stopped) stand_still(rank, operation, *place.stopped, now);
      place.stopped.reset();
      record(sends ? TraceKind::send : TraceKind::receive, rank, operation,
             (sends ? message.sent : message.received).value_or(now), now);
      return true;
    }
    if (!place.stopped) place.stopped = now;
    if (end) {
      go_on(rank, *end);
    } else {
      (sends ? message.sender_stopped : message.receiver_stopped) = true;
    }
    return false;
  }
  void stand_still(int rank, const Operation& operation, double since, double now) {
    simulated_.ranks[at(rank)].wait_s += now - since;
    record(TraceKind::wait, rank, operation, since, now);
  }

  void record(TraceKind kind, int rank, const Operation& operation, double begin, double end) {
    simulated_.events[at(rank)].push_back(
        {.kind = kind,
         .rank = rank,
         .step = operation.step,
         .owner = operation.owner,
         .peer = operation.peer,
         .slot = slot_of(operation),
         .gradient = concerns_gradients(operation),
         .pass = load_.schedule.pass,
         .bytes = kind == TraceKind::compute || kind == TraceKind::add ? 0 : bytes_of(operation),
         .begin_ns = in_ns(begin),
         .end_ns = in_ns(end)});
  }

  void check_all_ended() const {
    for (int rank = 0; rank < ranks(); ++rank) {
      const ProgramPlace& place = places_[at(rank)];
      if (place.operation == program(rank).size()) continue;
      throw_usage_error({.where = "simulate",
                         .expected = "a schedule that check_schedule() accepts",
                         .actual = "one that stops for ever at " +
                                   ringlab::place(rank, program(rank)[place.operation])});
    }
  }

  const Load& load_;
  const Machine& machine_;
  const Disturbance& disturbance_;
  NetworkModel network_;
  std::vector<ProgramPlace> places_;
  std::vector<std::int64_t> blocks_done_;
  std::map<MessageKey, int> numbers_;
  std::vector<SimulatedMessage> messages_;
  std::priority_queue<RankEvent, std::vector<RankEvent>, std::greater<>> events_;
  std::int64_t made_ = 0;
  Simulation simulated_;
};

void check(bool holds, const std::string& expected, const std::string& actual) {
  if (holds) return;
  throw_usage_error({.where = "simulate", .expected = expected, .actual = actual});
}

void check_load(const Load& load, const Disturbance& disturbance) {
  const std::size_t ranks = load.schedule.ranks.size();
  const std::string count = std::to_string(ranks);
  check(at(load.need.ranks()) == ranks, "needs of " + count + " ranks",
        std::to_string(load.need.ranks()));
  check(load.tokens.size() == ranks, count + " chunk lengths", std::to_string(load.tokens.size()));
  check(load.work.pass == load.schedule.pass, "work of the schedule's pass", "that of the other");
  check(disturbance.slower.empty() || disturbance.slower.size() == ranks,
        count + " factors, or none", std::to_string(disturbance.slower.size()));
  for (const double times : disturbance.slower) {
    check(std::isfinite(times) && times > 0, "positive factors", std::to_string(times));
  }
  check(std::isfinite(disturbance.jitter) && disturbance.jitter >= 0, "jitter of 0 or more",
        std::to_string(disturbance.jitter));
}

}  // namespace

Simulation simulate(const Load& load, const Machine& machine, const Disturbance& disturbance) {
  check_machine(machine);
  check_load(load, disturbance);
  return ScheduleRun(load, machine, disturbance).run();
}

double one_device_seconds(double pairs, double tokens, const Work& work, CutBlocks cut,
                          const Machine& machine) {
  return machine.block_s + pairs * static_cast<double>(work.flops_per_pair) /
                               machine.flops(work.pass, tokens, cut != CutBlocks::none);
}

}  // namespace ringlab::model
