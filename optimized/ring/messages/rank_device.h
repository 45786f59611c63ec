// The choice of a device for a rank that is a process.
#pragma once

#include <string>

#include "optimized/transport/tell_all.h"

namespace ringlab::ring {

struct RankDevice {
  int number = 0;     ///< among those that this process sees
  std::string name;   ///< the same for the same device only: "0000:17:00.0 of machine …"
  std::string model;  ///< "NVIDIA H100 80GB HBM3"
};

/// An identifier that no other running machine has; containers of one machine share it.
std::string this_machine();

/// The ranks of a machine take its devices in turn. Collective. Environment error where there is no
/// device.
RankDevice choose_rank_device(const TellAll& tell_all, int rank, const std::string& machine);

}  // namespace ringlab::ring
