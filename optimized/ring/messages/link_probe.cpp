#include "optimized/ring/messages/link_probe.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cuda/device.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

constexpr std::int64_t kBytes = 251;  // no multiple of anything

// Bytes that differ from rank to rank and from stream to stream, so that a misdirected
// message is found.
std::vector<std::byte> words_of(int rank, StreamKind kind) {
  std::vector<std::byte> words;
  for (std::int64_t i = 0; i < kBytes; ++i) {
    words.push_back(static_cast<std::byte>(i + 31 * rank + 101 * static_cast<int>(kind) + 1));
  }
  return words;
}

const char* name_of(StreamKind kind) { return kind == StreamKind::sums ? "sums" : "chunks"; }

void probe(DeviceLinks& links, StreamKind kind, const LinkEnds& ends) {
  const int next = (ends.rank + 1) % ends.ranks;
  const int previous = (ends.rank + ends.ranks - 1) % ends.ranks;
  const cuda::OwnedStream stream = cuda::make_stream(ends.device);
  // Words of this rank in memory of its own: `said` lives until the wait is over.
  const cuda::DeviceTensor<std::byte> said(ends.device, words_of(ends.rank, kind));
  // Filled with wrong words: a receive that writes nothing is found.
  const cuda::DeviceTensor<std::byte> heard(ends.device, words_of(previous + 1, kind));
  // The next rank is also the previous one where there are two ranks, and
  // this rank itself where there is one.
  const std::vector<DeviceMessage> messages = {
      {MessageSide::send, next, said.data(), said.bytes()},
      {MessageSide::receive, previous, heard.data(), heard.bytes()}};
  try {
    links.exchange(kind, messages, stream.get(),
                   std::string("pass a word round the links for ") + name_of(kind));
    links.wait(stream.get());
  } catch (...) {  // half of an exchange must not stay on the device
    links.abort();
    throw;
  }
  std::vector<std::byte> words(static_cast<std::size_t>(kBytes));
  heard.read(0, words);
  if (words == words_of(previous, kind)) return;
  throw_environment_error(
      {.where = "rank " + std::to_string(ends.rank) + ", links for " + name_of(kind),
       .expected = "the " + std::to_string(kBytes) + " bytes that rank " +
                   std::to_string(previous) + " sent",
       .actual = "others",
       .hint = "NCCL_DEBUG=INFO says how NCCL connects the devices"});
}

}  // namespace

void probe_links(DeviceLinks& links, const LinkEnds& ends) {
  probe(links, StreamKind::chunks, ends);
  probe(links, StreamKind::sums, ends);
}

}  // namespace ringlab::ring
