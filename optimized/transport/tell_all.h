// Texts, of any bytes, that the ranks of a network tell each other. All functions are collective
// and send by way of rank 0, with messages of one tag.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// Every rank's text on rank 0, in their order; nothing elsewhere.
std::vector<std::string> gather_texts(const std::string& mine, int tag, Communicator& network);

/// Rank 0's text on all ranks. `mine` of other ranks is not looked at.
std::string text_of_first(const std::string& mine, int tag, Communicator& network);

/// Every rank says a text and hears those of all ranks, in their order.
using TellAll = std::function<std::vector<std::string>(const std::string& mine)>;

/// Tells by messages with `tag`, by way of rank 0; may be used again and again. `network` must
/// outlive what is returned.
TellAll tell_all_over(Communicator& network, int tag);

}  // namespace ringlab
