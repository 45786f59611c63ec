// The peer program torch_peer.py as text, so that it travels with the program.
#pragma once

#include <string_view>

namespace ringlab::bench {

/// For `python -c`.
std::string_view torch_peer_source();

}  // namespace ringlab::bench
