// A job of ranks that are processes, as one rank sees it.
#pragma once

#include <functional>
#include <string>

#include "optimized/transport/communicator.h"

namespace ringlab::ring {

struct ProcessJob {
  Communicator& network;  ///< connects the ranks; carries all their messages but data
  /// Called while the device works: throws when another rank has failed. May be empty.
  std::function<void(const std::string& operation)> check_others = {};
};

}  // namespace ringlab::ring
