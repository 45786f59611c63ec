// The way of copies between devices: direct, or through the host.
#pragma once

#include <string>

namespace ringlab::ring {

/// Way of copies between the first `devices`: empty for one device, "from device to device", or the
/// pairs whose copies are slower: "0 -> 1 and 1 -> 0 through the host".
std::string copies_text(int devices);

}  // namespace ringlab::ring
