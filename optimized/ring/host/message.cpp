#include "optimized/ring/host/message.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <string>

namespace ringlab::ring {
namespace {

std::string wrong(const char* what, std::int64_t got, std::int64_t expected) {
  return std::string(what) + " " + std::to_string(got) + " where " + std::to_string(expected) +
         " was due";
}

std::span<const std::byte> as_bytes(const MessageHeader& header) {
  return std::as_bytes(std::span(&header, 1));
}

/// Checksum of the header with an empty sum, and of the times.
std::uint64_t sum_of(MessageHeader header, std::span<const StepTime> times) {
  header.header_sum = 0;
  return checksum(as_bytes(header)) ^ (checksum(std::as_bytes(times)) * 3);
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void merge_step_times(std::vector<StepTime>& known, std::span<const StepTime> heard) {
  for (std::size_t rank = 0; rank < known.size(); ++rank) {
    if (heard[rank].steps > known[rank].steps) known[rank] = heard[rank];
  }
}

std::int64_t header_bytes(int ranks) {
  return static_cast<std::int64_t>(sizeof(MessageHeader)) +
         ranks * static_cast<std::int64_t>(sizeof(StepTime));
}

void write_header(MessageHeader header, std::span<const StepTime> times, std::span<std::byte> out) {
  header.header_sum = sum_of(header, times);
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, times.data(), times.size_bytes());
}

ReadHeader read_header(std::span<const std::byte> bytes, int ranks) {
  ReadHeader read;
  read.times.resize(static_cast<std::size_t>(ranks));
  std::memcpy(&read.header, bytes.data(), sizeof read.header);
  std::memcpy(read.times.data(), bytes.data() + sizeof read.header,
              read.times.size() * sizeof(StepTime));
  if (read.header.magic != MessageHeader::kMagic) {
    read.fault = "a message that is none of this program's (wrong magic number)";
  } else if (read.header.header_sum != sum_of(read.header, read.times)) {
    read.fault = "a damaged header (its checksum does not match)";
  }
  return read;
}

std::string header_fault(const MessageHeader& got, const MessageHeader& expected) {
  if (got.agreement != expected.agreement) return "a message of another run";
  if (got.epoch != expected.epoch) return wrong("a message of epoch", got.epoch, expected.epoch);
  if (got.payload != expected.payload) return "a message of another kind";
  if (got.owner != expected.owner) return wrong("the chunk of rank", got.owner, expected.owner);
  if (got.source != expected.source) {
    return wrong("a message from rank", got.source, expected.source);
  }
  if (got.checked != expected.checked) return "a message of another integrity mode";
  if (got.first_bytes != expected.first_bytes) {
    return wrong("first tensor of bytes:", got.first_bytes, expected.first_bytes);
  }
  if (got.second_bytes != expected.second_bytes) {
    return wrong("second tensor of bytes:", got.second_bytes, expected.second_bytes);
  }
  return {};
}

}  // namespace ringlab::ring
