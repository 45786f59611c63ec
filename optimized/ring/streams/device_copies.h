// Which way copies between devices take.
#pragma once

#include <string>

namespace ringlab::ring {

/// Way of copies between the first `devices`: empty where there is one, "from device to device", or
/// which pairs' copies are slower: "0 -> 1 and 1 -> 0 through the host".
std::string copies_text(int devices);

}  // namespace ringlab::ring
