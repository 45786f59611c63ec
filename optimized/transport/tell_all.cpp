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

std::vector<std::string> say_and_hear(const std::string& mine, int tag, Communicator& network) {
  std::vector<std::string> all;
  if (network.rank() != 0) {
    say(mine, 0, tag, network);
    for (int rank = 0; rank < network.ranks(); ++rank) all.push_back(hear(0, tag, network));
    return all;
  }
  all.push_back(mine);
  for (int rank = 1; rank < network.ranks(); ++rank) all.push_back(hear(rank, tag, network));
  for (int rank = 1; rank < network.ranks(); ++rank) {
    for (const std::string& text : all) say(text, rank, tag, network);
  }
  return all;
}

}  // namespace

TellAll tell_all_over(Communicator& network, int tag) {
  return [&network, tag](const std::string& mine) { return say_and_hear(mine, tag, network); };
}

}  // namespace ringlab
