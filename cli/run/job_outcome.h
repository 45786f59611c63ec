// Whether all ranks of a job can start: what is wrong is known to all and said once.
#pragma once

#include <optional>
#include <string>

#include "optimized/transport/communicator.h"
#include "reference/core/error.h"

namespace ringlab::cli {

/// What keeps a job from starting.
struct JobFailure {
  int exit_code = 0;      ///< of the first rank that failed, the same on all ranks
  std::string text = {};  ///< on rank 0 only: once when all ranks say the same, else with the ranks
};

/// To be called by all ranks, with the error of this rank if there was one; each returns whether
/// any rank has one. RankError when a rank does not come.
std::optional<JobFailure> share_failure(const std::optional<Error>& mine, Communicator& network);

}  // namespace ringlab::cli
