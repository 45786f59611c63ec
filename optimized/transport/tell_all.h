// All ranks of a network tell each other a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// Every rank says a text, any bytes, and hears those of all ranks, in their order. Collective.
using TellAll = std::function<std::vector<std::string>(const std::string& mine)>;

/// Tells by messages with `tag`, by way of rank 0; may be used again and again. `network` must
/// outlive what is returned.
TellAll tell_all_over(Communicator& network, int tag);

}  // namespace ringlab
