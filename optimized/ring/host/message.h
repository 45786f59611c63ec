// The header of a message, which travels before its tensors and says what they are; every hop
// checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/core/run.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::ring {

/// First part of a header; the second holds the step times of all ranks that the sender knows.
/// Written as it lies in memory: all ranks of a job run the same build, which the agreement checks.
struct MessageHeader {
  static constexpr std::uint64_t kMagic = 0x31474d2d4c474e52;  // "RNGL-MG1"
  std::uint64_t magic = kMagic;
  std::uint64_t agreement = 0;  ///< hash of problem and options: another run's message has another
  std::uint32_t epoch = 0;      ///< 0 forward, 1 backward
  Payload payload = Payload::chunk;
  std::int32_t source = 0;        ///< the rank that sends this copy
  std::int32_t owner = 0;         ///< whose chunk it is
  std::int32_t step = 0;          ///< of the sender
  std::uint32_t checked = 0;      ///< 1: the checksums below are valid
  std::int64_t first_bytes = 0;   ///< of K, or dK
  std::int64_t second_bytes = 0;  ///< of V, or dV
  std::uint64_t first_sum = 0;    ///< XXH3 of these bytes
  std::uint64_t second_sum = 0;
  std::uint64_t header_sum = 0;  ///< of all the above and the step times
};
static_assert(sizeof(MessageHeader) == 80);

/// Mean time of a rank's steps, without waits for others. Every header carries the times of all
/// ranks that its sender knows, so that after P-1 hops every rank knows every rank's.
struct StepTime {
  std::int32_t steps = 0;  ///< that the mean is over; 0: nothing known
  float mean_seconds = 0;
};

/// Keeps of each rank the mean over more steps.
void merge_step_times(std::vector<StepTime>& known, std::span<const StepTime> heard);

/// A header and the step times behind it, as bytes.
std::int64_t header_bytes(int ranks);
void write_header(MessageHeader header, std::span<const StepTime> times, std::span<std::byte> out);

/// A header that was read, and its fault: why write_header() cannot have written it, or empty.
struct ReadHeader {
  MessageHeader header;
  std::vector<StepTime> times;
  std::string fault;
};
ReadHeader read_header(std::span<const std::byte> bytes, int ranks);

/// The fault of a header where `expected` was due; empty when there is none.
std::string header_fault(const MessageHeader& got, const MessageHeader& expected);

std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace ringlab::ring
