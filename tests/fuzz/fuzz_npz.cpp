// libFuzzer target: any bytes as a .npz archive.
#include <boost/crc.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tests/fuzz/npz_laws.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  ringlab::io::npz_laws({begin, begin + size});
  return 0;
}

namespace {

using Bytes = std::span<std::uint8_t>;
constexpr std::size_t kLocalHeader = 30, kCentralHeader = 46, kEndOfArchive = 22;

template <class Word>
Word word_at(Bytes bytes, std::size_t at) {
  Word word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

void put_word(Bytes bytes, std::size_t at, std::uint32_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof word);
}

std::size_t place_of(Bytes bytes, std::string_view mark, std::size_t from) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .find(mark, from);
}

/// Writes the checksum of what is stored, not packed, to both of its headers.
void mend_checksum(Bytes bytes, std::size_t central) {
  const std::size_t local = word_at<std::uint32_t>(bytes, central + 42);
  const std::size_t count = word_at<std::uint32_t>(bytes, central + 20);
  if (word_at<std::uint16_t>(bytes, central + 10) != 0) return;
  if (local + kLocalHeader > bytes.size()) return;
  const std::size_t begin = local + kLocalHeader + word_at<std::uint16_t>(bytes, local + 26) +
                            word_at<std::uint16_t>(bytes, local + 28);
  if (begin + count > bytes.size()) return;
  boost::crc_32_type checksum;
  checksum.process_bytes(bytes.data() + begin, count);
  put_word(bytes, central + 16, checksum.checksum());
  put_word(bytes, local + 14, checksum.checksum());
}

}  // namespace

// Nearly every random edit breaks a checksum or the place of the directory; most inputs get fitting
// ones, so that they reach what is behind them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const Bytes bytes(data, size);
  if (seed % 8 == 0) return size;
  const std::size_t first = place_of(bytes, "PK\1\2", 0);
  const std::size_t end = place_of(bytes, "PK\5\6", 0);
  if (first < end && end < size && end + kEndOfArchive <= size) {
    put_word(bytes, end + 12, static_cast<std::uint32_t>(end - first));
    put_word(bytes, end + 16, static_cast<std::uint32_t>(first));
  }
  for (std::size_t at = first; at < size && at + kCentralHeader <= size;
       at = place_of(bytes, "PK\1\2", at + kCentralHeader)) {
    mend_checksum(bytes, at);
  }
  return size;
}
