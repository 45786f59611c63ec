// The networks whose ranks are threads of the test.
#include "tests/optimized/transport/any_network.h"

namespace ringlab {

std::vector<AnyNetwork> every_network() {
  std::vector<AnyNetwork> networks = {{.name = "threads_buffered"},
                                      {.name = "threads_rendezvous", .rendezvous = true}};
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const bool rendezvous : {false, true}) {
      networks.push_back({.name = std::string("simulated_") +
                                  (rendezvous ? "rendezvous_" : "buffered_") + std::to_string(seed),
                          .simulated = true,
                          .rendezvous = rendezvous,
                          .seed = seed});
    }
  }
  return networks;
}

}  // namespace ringlab
