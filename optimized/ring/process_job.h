// Ranks that are processes, as each of them sees the others.
#pragma once

#include <functional>
#include <string>

#include "optimized/transport/communicator.h"

namespace ringlab::ring {

struct ProcessJob {
  Communicator& network;  ///< connects the ranks; carries what they say besides data
  /// Asked while the device works: throws when another rank has failed. May be empty.
  std::function<void(const std::string& operation)> check_others = {};
};

}  // namespace ringlab::ring
