// The peer programs torch_peer.py and gpu_torch_peer.py as text, so that they travel with the
// program.
#pragma once

#include <string_view>

namespace ringlab::bench {

/// For `python -c`.
std::string_view torch_peer_source();
std::string_view gpu_torch_peer_source();

}  // namespace ringlab::bench
