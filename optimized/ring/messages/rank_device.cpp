#include "optimized/ring/messages/rank_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "optimized/cuda/device.h"

namespace ringlab::ring {

std::string this_machine() {
  std::string id;
  // The kernel draws this number when it boots; names of hosts may be the same on two machines.
  if (std::ifstream("/proc/sys/kernel/random/boot_id") >> id) return id;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

RankDevice choose_rank_device(const TellAll& tell_all, int rank, const std::string& machine) {
  const int devices = cuda::device_count();
  const std::vector<std::string> machines = tell_all(machine);
  // Ranks of this machine before this one: by their count ranks take devices in turn.
  const auto before = std::count(machines.begin(), machines.begin() + rank, machine);
  RankDevice chosen;
  chosen.number = static_cast<int>(before % devices);
  const cuda::DeviceFacts facts = cuda::device_facts(chosen.number);
  // Names the device by its bus, because processes may number the same devices differently.
  chosen.name = facts.bus + " of machine " + machine;
  chosen.model = facts.name;
  return chosen;
}

}  // namespace ringlab::ring
