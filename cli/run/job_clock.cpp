#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "cli/run/job.h"

namespace ringlab::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClockTag = (1 << 20) + 4;
constexpr int kQuestions = 12;  // the first ones are slow: connections are being made

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::int64_t receive_number(int from, Communicator& network) {
  std::int64_t value = 0;
  network.wait(network.post_receive(from, kClockTag, writable_bytes_of(&value, 1)));
  return value;
}
void send_number(int to, std::int64_t value, Communicator& network) {
  network.wait(network.post_send(to, kClockTag, bytes_of(&value, 1)));
}

// The offset of another rank's clock from this one's, and the round trip that measured it.
struct Offset {
  std::int64_t ns = 0;
  std::int64_t round_trip_ns = std::numeric_limits<std::int64_t>::max();
};

Offset measure_offset(int rank, Communicator& network) {
  Offset best;
  for (int question = 0; question < kQuestions; ++question) {
    const std::int64_t asked = now_ns();
    send_number(rank, 0, network);
    const std::int64_t there = receive_number(rank, network);
    const std::int64_t round_trip = now_ns() - asked;
    if (round_trip >= best.round_trip_ns) continue;
    best = {.ns = there - (asked + round_trip / 2), .round_trip_ns = round_trip};
  }
  return best;
}

JobClock clock_at(std::int64_t zero_ns, std::int64_t round_trip_ns) {
  const std::chrono::nanoseconds zero(std::min(zero_ns, now_ns()));
  return {.zero = Clock::time_point(std::chrono::duration_cast<Clock::duration>(zero)),
          .uncertainty_s = static_cast<double>(round_trip_ns) / 2 * 1e-9};
}

}  // namespace

JobClock align_clocks(Communicator& network) {
  if (network.rank() != 0) {
    for (int question = 0; question < kQuestions; ++question) {
      receive_number(0, network);
      send_number(0, now_ns(), network);
    }
    const std::int64_t zero = receive_number(0, network);
    return clock_at(zero, receive_number(0, network));
  }
  std::vector<Offset> offsets;
  for (int rank = 1; rank < network.ranks(); ++rank) {
    offsets.push_back(measure_offset(rank, network));
  }
  const std::int64_t zero = now_ns();
  for (int rank = 1; rank < network.ranks(); ++rank) {
    const Offset& offset = offsets[static_cast<std::size_t>(rank - 1)];
    send_number(rank, zero + offset.ns, network);
    send_number(rank, offset.round_trip_ns, network);
  }
  return clock_at(zero, 0);
}

}  // namespace ringlab::cli
