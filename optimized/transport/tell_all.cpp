#include "optimized/transport/tell_all.h"

#include <cstdint>

namespace ringlab {
namespace {

void say(const std::string& text, int to, int tag, Communicator& network) {
  const std::int64_t length = std::ssize(text);
  network.wait(network.post_send(to, tag, bytes_of(&length, 1)));
  network.wait(network.post_send(to, tag, bytes_of(text.data(), length)));
}

std::string hear(int from, int tag, Communicator& network) {
  std::int64_t length = 0;
  network.wait(network.post_receive(from, tag, writable_bytes_of(&length, 1)));
  std::string text(static_cast<std::size_t>(length), 0);
  network.wait(network.post_receive(from, tag, writable_bytes_of(text.data(), length)));
  return text;
}

}  // namespace

std::vector<std::string> gather_texts(const std::string& mine, int tag, Communicator& network) {
  if (network.rank() != 0) {
    say(mine, 0, tag, network);
    return {};
  }
  std::vector<std::string> all = {mine};
  for (int rank = 1; rank < network.ranks(); ++rank) all.push_back(hear(rank, tag, network));
  return all;
}

std::string text_of_first(const std::string& mine, int tag, Communicator& network) {
  if (network.rank() != 0) return hear(0, tag, network);
  for (int rank = 1; rank < network.ranks(); ++rank) say(mine, rank, tag, network);
  return mine;
}

TellAll tell_all_over(Communicator& network, int tag) {
  return [&network, tag](const std::string& mine) {
    std::vector<std::string> all = gather_texts(mine, tag, network);
    all.resize(static_cast<std::size_t>(network.ranks()));
    for (std::string& text : all) text = text_of_first(text, tag, network);
    return all;
  };
}

}  // namespace ringlab
